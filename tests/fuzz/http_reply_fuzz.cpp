// Answers of a web server that may be anybody's: reading one never crashes, never holds more than the bound, and says
// the same however the bytes were cut on their way.
#include "../../src/net/http_fetch_reply.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace tandem::net;

constexpr std::size_t kMaxBody = 256;

// Ends at the first verdict, or with the end of the stream.
FetchResult read(std::string_view bytes, std::size_t piece, const FetchRequest& request, bool conditional) {
  ReplyReader reader(request, conditional);
  while (!bytes.empty()) {
    const std::string_view next = bytes.substr(0, piece);
    bytes.remove_prefix(next.size());
    if (auto verdict = reader.feed(next)) return std::move(*verdict);
  }
  return reader.end(true);
}

bool same(const FetchResult& a, const FetchResult& b) {
  if (a.index() != b.index()) return false;
  if (const auto* answer = std::get_if<FetchAnswer>(&a)) {
    const auto& other = std::get<FetchAnswer>(b);
    return answer->status == other.status && answer->body == other.body;
  }
  return std::get<FetchFailure>(a).cause == std::get<FetchFailure>(b).cause;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  FetchRequest request;
  request.max_body_bytes = kMaxBody;
  request.any_status = (data[0] & 1) != 0;
  const bool conditional = (data[0] & 2) != 0;
  const std::size_t piece = 1 + static_cast<std::size_t>(data[0] >> 2);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const FetchResult whole = read(bytes, std::max<std::size_t>(bytes.size(), 1), request, conditional);
  if (const auto* answer = std::get_if<FetchAnswer>(&whole))
    if (answer->body.size() > kMaxBody) std::abort();
  if (!same(whole, read(bytes, piece, request, conditional))) std::abort();
  return 0;
}

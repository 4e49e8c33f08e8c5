// HTTP heads and bodies from strangers: however the bytes are cut, the same head, the same body and the same rest come
// out, and what parses has one reading.
#include "tandem/net/client_address.hpp"
#include "tandem/net/http_head.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace tandem::net;

std::string read_request(std::string_view stream, std::size_t step) {
  HeadScanner scanner;
  std::string buffer, body;
  std::size_t at = 0, head_size = 0;
  const auto more = [&] {
    if (at >= stream.size()) return false;
    buffer.append(stream.substr(at, step));
    at += std::min(step, stream.size() - at);
    return true;
  };
  while (head_size == 0) {
    if (!more()) return "more";
    const auto found = scanner.scan(buffer);
    if (const auto* fault = std::get_if<HeadScanner::Fault>(&found)) return "fault " + std::to_string(fault->status);
    if (const auto* end = std::get_if<HeadScanner::Found>(&found)) head_size = end->size;
  }
  if (head_size > kMaxHeadBytes) std::abort();
  const std::string text = buffer.substr(0, head_size);
  buffer.erase(0, head_size);
  const auto parsed = parse_head(text);
  if (const auto* status = std::get_if<std::uint16_t>(&parsed)) return "refused " + std::to_string(*status);
  const auto& head = std::get<RequestHead>(parsed);
  if (head.chunked && head.content_length) std::abort();
  if (head.upgrade && head.has_body()) std::abort();
  (void)client_of(head, Address{}, {ProxySettings::Trust::forwarded_for, 2, {AddressBlock{Address{}, 0}}});
  std::string out = std::string(head.method) + " " + std::string(head.path);
  BodyReader reader(head);
  while (true) {
    const BodyReader::Step taken = reader.read(buffer, body);
    if (taken.taken > buffer.size() || body.size() > kMaxBodyBytes) std::abort();
    buffer.erase(0, taken.taken);
    if (taken.status == BodyReader::Status::too_large) return out + " too large";
    if (taken.status == BodyReader::Status::malformed) return out + " malformed";
    if (taken.status == BodyReader::Status::done)
      return out + " " + body + "|" + buffer + std::string(stream.substr(at));
    if (!more()) return out + " more";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = read_request(stream, stream.size() + 1);
  if (read_request(stream, 1) != whole || read_request(stream, 1u + data[0]) != whole) std::abort();
  return 0;
}

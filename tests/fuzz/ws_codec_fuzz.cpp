// The frame reader on hostile bytes: however the stream is cut, it reads the same frames and finds the same fault.
#include "tandem/net/ws_codec.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace tandem::net;

std::string read_all(std::span<const std::uint8_t> stream, std::size_t step) {
  constexpr std::uint64_t kLimit = 100'000;
  FrameReader reader;
  std::string out;
  std::vector<std::uint8_t> piece;
  for (std::size_t at = 0; at < stream.size(); at += step) {
    auto in = stream.subspan(at, std::min(step, stream.size() - at));
    while (!in.empty()) {
      if (reader.remaining() == 0) {
        const auto head = reader.read_head(in, kLimit);
        if (head.taken == 0 || head.taken > in.size()) std::abort();
        in = in.subspan(head.taken);
        if (head.status == FrameReader::Status::protocol_error) return out + "!";
        if (head.status == FrameReader::Status::too_large) return out + "+";
        if (head.status == FrameReader::Status::need_more) continue;
        if (reader.message_bytes() > kLimit) std::abort();
        out += "[" + std::to_string(static_cast<int>(reader.opcode())) + (reader.fin() ? "F" : "-");
      } else {
        const std::size_t n = std::min<std::uint64_t>(in.size(), reader.remaining());
        piece.assign(n, 0);
        reader.take(piece.data(), in.first(n));
        out.append(piece.begin(), piece.end());
        in = in.subspan(n);
      }
      if (reader.remaining() == 0) out += "]";
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> stream(data + 1, size - 1);
  const std::string whole = read_all(stream, std::max<std::size_t>(1, stream.size()));
  // A fault may be seen before the rest of a head is there, but the frames before it are the same.
  if (read_all(stream, 1) != whole || read_all(stream, 1u + data[0]) != whole) std::abort();
  (void)judge_close(stream.first(std::min<std::size_t>(stream.size(), kMaxControlPayload)));
  return 0;
}

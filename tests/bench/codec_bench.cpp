// What a frame costs before and after the crypto: unmasking, heads, the codec over a stream, and an HTTP upgrade's
// head.
#include "tandem/net/http_head.hpp"
#include "tandem/net/timer_wheel.hpp"
#include "tandem/net/ws_codec.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

using namespace tandem;
using namespace tandem::net;

void unmask_bytes(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  std::vector<std::uint8_t> in(size, 7), out(size);
  for (auto _ : state) {
    unmask(out.data(), in.data(), size, {1, 2, 3, 4}, 1);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(unmask_bytes)->Arg(64)->Arg(1024)->Arg(16384);

std::vector<std::uint8_t> stream_of(std::size_t payload, std::size_t frames) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < frames; ++i) {
    std::uint8_t head[kMaxServerHeader];
    const std::size_t n = write_frame_head(head, Opcode::binary, true, payload);
    head[1] = static_cast<std::uint8_t>(head[1] | 0x80u);
    out.insert(out.end(), head, head + n);
    out.insert(out.end(), {1, 2, 3, 4});
    out.insert(out.end(), payload, 9);
  }
  return out;
}

void read_frames(benchmark::State& state) {
  const auto payload = static_cast<std::size_t>(state.range(0));
  const std::vector<std::uint8_t> stream = stream_of(payload, 65536 / (payload + 14) + 1);
  std::vector<std::uint8_t> out(payload);
  for (auto _ : state) {
    FrameReader reader;
    std::span<const std::uint8_t> in(stream);
    while (!in.empty()) {
      in = in.subspan(reader.read_head(in, 1 << 20).taken);
      const auto n = static_cast<std::size_t>(reader.remaining());
      reader.take(out.data(), in.first(n));
      in = in.subspan(n);
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(stream.size()));
}
BENCHMARK(read_frames)->Arg(16)->Arg(200)->Arg(1024)->Arg(16384);

void read_upgrade_head(benchmark::State& state) {
  const std::string text =
      "GET / HTTP/1.1\r\nHost: relay1.example.com\r\nUpgrade: websocket\r\nConnection: "
      "Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nUser-Agent: some client or other/1.0\r\nx-relay-room: " +
      std::string(64, 'a') + "\r\n\r\n";
  for (auto _ : state) {
    HeadScanner scanner;
    benchmark::DoNotOptimize(scanner.scan(text));
    const auto parsed = parse_head(text);
    benchmark::DoNotOptimize(std::get<RequestHead>(parsed).single("x-relay-room"));
  }
}
BENCHMARK(read_upgrade_head);

// Sockets in the wheel must not make setting one dearer.
void move_a_deadline(benchmark::State& state) {
  const TimePoint start{std::chrono::hours(1)};
  TimerWheel wheel(start);
  std::vector<TimerNode> nodes(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < nodes.size(); ++i) wheel.set(nodes[i], start + milliseconds(i % 30'000 + 1));
  std::size_t i = 0;
  for (auto _ : state) {
    wheel.set(nodes[i % nodes.size()], start + milliseconds((i * 7919) % 30'000 + 1));
    ++i;
  }
}
BENCHMARK(move_a_deadline)->Arg(1000)->Arg(100'000);

}  // namespace

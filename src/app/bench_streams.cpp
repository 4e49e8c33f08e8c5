#include "app/bench_streams.hpp"

#include <cstring>
#include <utility>

namespace tandem::app {
namespace {

using client::Ending;
using client::Opcode;
using std::chrono::duration;

constexpr std::size_t kQueueBytes = 256 * 1024;  // unsent, per sender

}  // namespace

Streams::Streams(BenchRun& run, const BenchOptions& options)
    : run_(run), options_(options), payload_(static_cast<std::size_t>(options.frame_bytes)) {
  pairs_.resize(static_cast<std::size_t>(options.rooms));
}

bool Streams::pair_all() {
  std::size_t parked = 0;
  return run_.run_until(Clock::now() + BenchRun::kPatience, [&] {
    std::size_t ready = 0;
    for (const Pair& pair : pairs_) ready += pair.phone_in || pair.over ? 1 : 0;
    // Not all at once: what is measured comes later.
    while (parked < pairs_.size() && parked < ready + static_cast<std::size_t>(options_.concurrency))
      park(pairs_[parked++]);
    return ready == pairs_.size();
  });
}

Streams::Measured Streams::send_for(duration<double> time) {
  const auto began = Clock::now();
  const double before = count();
  latencies_.clear();
  last_ = began;
  (void)run_.run_until(began + std::chrono::duration_cast<Clock::duration>(time), [&] {
    pump();
    return false;
  });
  return {duration<double>(Clock::now() - began).count(), count() - before, std::exchange(latencies_, {})};
}

double Streams::finish() {
  (void)run_.run_until(Clock::now() + BenchRun::kPatience, [this] {
    for (const Pair& pair : pairs_)
      if (!pair.over && pair.received < pair.sent) return false;
    return true;
  });
  for (Pair& pair : pairs_) {
    if (!pair.over && pair.received < pair.sent) run_.fault("messages that never arrived");
    pair.over = true;
    if (pair.phone) pair.phone->close(1000, "");
    if (pair.mac) pair.mac->close(1000, "");
  }
  return count();
}

double Streams::count() const {
  double sum = 0;
  for (const Pair& pair : pairs_) sum += static_cast<double>(pair.received);
  return sum;
}

void Streams::park(Pair& pair) {
  const RoomName room = run_.fresh_room();
  pair.mac = run_.open(Role::mac, room,
                       {.admitted =
                            [this, &pair, room](const std::string&) {
                              pair.mac_in = true;
                              join(pair, room);
                            },
                        .message = [this, &pair](Opcode, ByteView bytes) { received(pair, bytes); },
                        .ended =
                            [this, &pair](const Ending& ending) {
                              if (!pair.mac_in && run_.is_misplaced(ending)) return park(pair);
                              ended(pair, ending);
                            }});
}

void Streams::join(Pair& pair, const RoomName& room) {
  pair.phone = run_.open(Role::phone, room,
                         {.admitted = [&pair](const std::string&) { pair.phone_in = true; },
                          .message = nullptr,
                          .ended = [this, &pair](const Ending& ending) { ended(pair, ending); }});
}

void Streams::ended(Pair& pair, const Ending& ending) {
  if (std::exchange(pair.over, true)) return;
  const bool wants_ticket = client::is_ticket_required(ending);
  wants_ticket ? run_.fault("the relay demands attestation; set attest.required to false for a bench")
               : run_.fault(ending);
}

void Streams::pump() {
  const auto now = Clock::now();
  const double elapsed = duration<double>(now - last_).count();
  const bool paced = options_.messages_per_second > 0;
  if (paced && elapsed < 0.001) return;
  last_ = now;
  for (Pair& pair : pairs_) {
    if (pair.over || !pair.phone_in) continue;
    pair.credit = std::min(pair.credit + elapsed * options_.messages_per_second, 50.0);
    while (pair.phone->unsent() < kQueueBytes && (!paced || pair.credit >= 1)) {
      pair.credit -= 1;
      send(pair);
      if (pair.over) break;
    }
  }
}

void Streams::send(Pair& pair) {
  const auto stamp = Clock::now().time_since_epoch().count();
  std::memcpy(payload_.data(), &stamp, sizeof stamp);
  if (payload_.size() >= 2 * sizeof stamp) std::memcpy(payload_.data() + sizeof stamp, &pair.sent, sizeof pair.sent);
  pair.phone->send(Opcode::binary, payload_);
  ++pair.sent;
}

void Streams::received(Pair& pair, ByteView bytes) {
  Clock::rep stamp = 0;
  if (bytes.size() != payload_.size()) return run_.fault("a message of another size");
  std::memcpy(&stamp, bytes.data(), sizeof stamp);
  std::uint64_t number = pair.received;
  if (bytes.size() >= 2 * sizeof stamp) std::memcpy(&number, bytes.data() + sizeof stamp, sizeof number);
  if (number != pair.received++) run_.fault("a message lost or moved");
  latencies_.push_back(Clock::now() - Clock::time_point(Clock::duration(stamp)));
}

}  // namespace tandem::app

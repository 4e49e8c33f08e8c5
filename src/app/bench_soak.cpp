// The load of hours: pairings that come, talk, stall, drop without a word, and all reconnect at once now and then;
// where the relay's map may be written, rooms move away and back as well.
// Every message is checked; at the end the relay must be back where it began.
#include "app/bench_peer.hpp"
#include "app/bench_reshard.hpp"
#include "tandem/app/bench.hpp"
#include "tandem/core/random.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include <openssl/rand.h>

namespace tandem::app {
namespace {

using client::Ending;
using client::Endpoint;
using client::Opcode;
using Clock = BenchRun::Clock;
using std::chrono::duration;
using std::chrono::milliseconds;

constexpr auto kStormInterval = std::chrono::seconds(30);
constexpr auto kStep = milliseconds(20);

struct Side {
  std::shared_ptr<Endpoint> endpoint;
  bool in = false;
  std::uint64_t sent = 0, received = 0;
};

struct Pairing {
  RoomName room;
  Side mac, phone;
  Clock::time_point act_at{}, unstall_at{};
  int generation = 0;  // what a socket of an earlier life says does not count
};

class Soak {
 public:
  Soak(BenchRun& run, const BenchOptions& options)
      : run_(run),
        random_(seed()),
        pairings_(static_cast<std::size_t>(options.rooms)),
        resharder_(options.map, options.host, seed()) {}

  void run_for(duration<double> time) {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    auto storm_at = Clock::now() + kStormInterval;
    for (Pairing& pairing : pairings_) pairing.act_at = Clock::now() + some(1000);
    while (Clock::now() < end && !run_.is_hopeless()) {
      if (Clock::now() >= storm_at) {
        for (Pairing& pairing : pairings_) leave(pairing, false);
        ++storms_;
        storm_at = Clock::now() + kStormInterval;
      }
      resharder_.advance();
      for (Pairing& pairing : pairings_) act(pairing);
      run_.run_for(kStep);
    }
    resharder_.finish();
    for (Pairing& pairing : pairings_) leave(pairing, random_.below(2) == 0);
    run_.run_for(milliseconds(500));
  }

  std::uint64_t splices() const { return splices_; }
  std::uint64_t messages() const { return messages_; }
  std::uint64_t storms() const { return storms_; }
  std::uint64_t reshards() const { return resharder_.count(); }
  std::uint64_t moved() const { return moved_; }

 private:
  static std::uint64_t seed() {
    std::uint64_t value = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&value), sizeof value);
    return value;
  }
  milliseconds some(std::uint64_t bound) { return milliseconds(static_cast<long>(random_.below(bound))); }

  void act(Pairing& pairing) {
    const auto now = Clock::now();
    if (pairing.unstall_at != Clock::time_point{} && now >= pairing.unstall_at) {
      pairing.unstall_at = {};
      pairing.mac.endpoint->pause_reading(false);
    }
    if (now < pairing.act_at) return;
    pairing.act_at = now + some(400);
    if (!pairing.mac.endpoint) return park(pairing);
    if (!pairing.phone.in) return;
    const std::uint64_t dice = random_.below(100);
    if (dice < 70) return talk(pairing.phone, 1 + random_.below(8), random_.below(20) == 0 ? 200 * 1024 : 2000);
    if (dice < 85) return talk(pairing.mac, 1 + random_.below(8), 300);
    if (dice < 90) return stall(pairing);
    if (dice < 95) return leave(pairing, true);
    leave(pairing, false);
  }

  void park(Pairing& pairing) {
    pairing.room = run_.fresh_room();
    const int generation = ++pairing.generation;
    open(pairing, pairing.mac, Role::mac, generation);
  }

  void open(Pairing& pairing, Side& side, Role role, int generation) {
    side = {};
    side.endpoint = run_.open(role, pairing.room,
                              {.admitted =
                                   [this, &pairing, &side, role, generation](const std::string&) {
                                     if (generation != pairing.generation) return;
                                     side.in = true;
                                     if (role == Role::mac) open(pairing, pairing.phone, Role::phone, generation);
                                     if (role == Role::phone) ++splices_;
                                   },
                               .message =
                                   [this, &pairing, role, generation](Opcode, ByteView bytes) {
                                     if (generation == pairing.generation) received(pairing, role, bytes);
                                   },
                               .ended =
                                   [this, &pairing, generation](const Ending& ending) {
                                     if (generation != pairing.generation) return;
                                     if (resharder_.explains(ending))
                                       ++moved_;
                                     else if (!run_.is_misplaced(ending))
                                       run_.fault(ending);
                                     leave(pairing, false);
                                   }});
  }

  void talk(Side& from, std::uint64_t count, std::size_t size) {
    constexpr std::size_t most_unsent = 512 * 1024;
    while (count-- > 0 && from.endpoint->unsent() < most_unsent) {
      Bytes message(size, static_cast<std::uint8_t>(from.sent));
      const std::uint64_t number = from.sent++;
      std::memcpy(message.data(), &number, sizeof number);
      from.endpoint->send(Opcode::binary, message);
    }
  }

  void received(Pairing& pairing, Role role, ByteView bytes) {
    Side& side = role == Role::mac ? pairing.mac : pairing.phone;
    std::uint64_t number = 0;
    if (bytes.size() < sizeof number) return run_.fault("a message of another size");
    std::memcpy(&number, bytes.data(), sizeof number);
    const bool intact = number == side.received++ && bytes.back() == static_cast<std::uint8_t>(number);
    if (!intact) run_.fault("a message lost, moved or altered");
    ++messages_;
  }

  void stall(Pairing& pairing) {
    pairing.mac.endpoint->pause_reading(true);
    pairing.unstall_at = Clock::now() + milliseconds(500) + some(2500);
    talk(pairing.phone, 40, 16 * 1024);
  }

  void leave(Pairing& pairing, bool politely) {
    ++pairing.generation;
    for (Side* side : {&pairing.phone, &pairing.mac}) {
      if (side->endpoint) politely ? side->endpoint->close(1000, "") : side->endpoint->abort();
      *side = {};
    }
    pairing.unstall_at = {};
  }

  BenchRun& run_;
  SeededRandom random_;
  std::vector<Pairing> pairings_;
  Resharder resharder_;
  std::uint64_t splices_ = 0, messages_ = 0, storms_ = 0, moved_ = 0;
};

}  // namespace

BenchRow bench_soak(const BenchOptions& options, const BenchProgress& progress) {
  BenchRun run(options, progress);
  run.expect(duration<double>(options.run_seconds));
  Soak soak(run, options);
  // A first tenth of the time warms the relay up: allocators, session tickets, lazily made tables.
  soak.run_for(duration<double>(options.run_seconds / 10));
  std::optional<RelayFigures> before, after;
  if (!options.admin.empty()) {
    run.run_for(milliseconds(1000));
    before = read_relay(options.admin);
  }
  soak.run_for(duration<double>(options.run_seconds * 9 / 10));
  BenchRow row{"soak",
               {{"splices", static_cast<double>(soak.splices())},
                {"messages", static_cast<double>(soak.messages())},
                {"storms", static_cast<double>(soak.storms())}},
               {}};
  if (!options.map.empty()) {
    row.figures.push_back({"reshards", static_cast<double>(soak.reshards())});
    row.figures.push_back({"sockets_moved_away", static_cast<double>(soak.moved())});
    if (soak.reshards() > 1 && soak.moved() == 0) run.fault("maps were published and nobody was moved");
  }
  if (before) {
    for (int tries = 0; tries < 10; ++tries) {  // aborted sockets are found dead one by one
      run.run_for(milliseconds(1000));
      after = read_relay(options.admin);
      if (after && after->sockets == 0 && after->descriptors <= before->descriptors) break;
    }
  }
  if (!options.admin.empty() && (!before || !after))
    run.fault("the admin listener at " + options.admin + " does not answer");
  if (before && after) {
    row.figures.push_back({"descriptors_before", before->descriptors});
    row.figures.push_back({"descriptors_after", after->descriptors});
    row.figures.push_back({"resident_mib_before", before->resident_bytes / (1024 * 1024)});
    row.figures.push_back({"resident_mib_after", after->resident_bytes / (1024 * 1024)});
    constexpr double grown = 1.05, allowance = 8 * 1024 * 1024;
    if (after->descriptors > before->descriptors + 2) run.fault("descriptors leaked");
    if (after->sockets > 0 || after->rooms > 0) run.fault("sockets or rooms left behind");
    if (after->resident_bytes > before->resident_bytes * grown + allowance) run.fault("resident memory grew");
  }
  row.faults = run.faults();
  return row;
}

}  // namespace tandem::app

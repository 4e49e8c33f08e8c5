// One pairing of the fleet: a mac and a phone that send each other numbered messages, and what became of them.
//
// A pairing is whole while both are admitted and each has heard the other's present splice. What breaks it, when it is
// whole again, how long its two ends looked for each other on different hosts, and which numbers never came is written
// to FleetRecord.
#pragma once

#include "tandem/client/device.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tandem::app {

// What one phase of a run saw, over all pairings.
struct FleetRecord {
  std::vector<Duration> recoveries;     // from the first end of a splice to the first message after it
  std::vector<Duration> splits;         // mac parked on one host, its phone trying another
  std::vector<Duration> eviction_gaps;  // between the two sockets of an evicted room
  std::map<std::string, std::map<std::int64_t, int>> attempts;  // by host, by second: connections begun
  std::map<std::string, std::vector<TimePoint>> evictions;      // by host: when the second socket of a room went
  std::map<std::string, int> endings;                           // how splices and attempts ended
  std::uint64_t delivered = 0, lost = 0, never_spliced = 0;
};

class FleetPairing {
 public:
  FleetPairing(boost::asio::io_context& loop, const client::TlsTrust& trust, const std::string& map_url,
               RandomSource& random, FleetRecord& record, int number);

  void start();
  void stop();
  void chat();        // one message each way, where admitted
  void drop_phone();  // its network goes away

  [[nodiscard]] bool is_whole() const noexcept { return whole_; }
  [[nodiscard]] const std::string& host() const noexcept { return sides_[0].host; }  // the mac's
  [[nodiscard]] const RoomName& room() const noexcept { return room_; }
  [[nodiscard]] Bucket bucket() const noexcept { return room_.bucket(); }
  [[nodiscard]] std::string trouble() const;  // why it is not whole, for people

 private:
  struct Side {
    std::unique_ptr<client::Device> device;
    std::string host, why;
    bool live = false, evicted = false;
    std::uint32_t admission = 0;       // of this side: counts its admissions
    std::uint64_t sent = 0;            // in this admission
    std::uint32_t peer_admission = 0;  // that the last message came from
    std::uint32_t heard_in = 0;        // admission of this side in which it came
    std::uint64_t last_number = 0;
    TimePoint ended_at{};
  };
  [[nodiscard]] client::DeviceSettings settings_of(Role role) const;
  [[nodiscard]] client::Device::Watchers watch(int side);
  void connecting(int side, const std::string& host);
  void admitted(int side);
  void ended(int side, const client::Ending& ending);
  void received(int side, ByteView bytes);
  void say(int side);
  void note_split();
  void note_whole();

  FleetRecord& record_;
  RoomName room_;
  Ed25519Seed seed_{};
  int number_;
  std::array<Side, 2> sides_;  // mac, phone
  bool whole_ = false;
  TimePoint broken_at_{}, split_since_{};
  bool was_whole_ = false;
};

}  // namespace tandem::app

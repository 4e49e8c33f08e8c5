#include "app/fleet_pairing.hpp"

#include "tandem/net/clock.hpp"
#include "tandem/protocol/derivation.hpp"

#include <cstring>
#include <utility>

namespace tandem::app {
namespace {

constexpr std::size_t kMessageBytes = 200;

struct Header {
  std::uint32_t admission;
  std::uint64_t number;
};

std::int64_t second_of(TimePoint t) { return t.time_since_epoch() / seconds(1); }

}  // namespace

FleetPairing::FleetPairing(boost::asio::io_context& loop, const client::TlsTrust& trust, const std::string& map_url,
                           RandomSource& random, FleetRecord& record, int number)
    : record_(record), number_(number) {
  std::array<std::uint8_t, 32> rs{}, secret{};
  random.fill(rs);
  random.fill(secret);
  room_ = protocol::room_name(rs, "fleet");
  seed_ = protocol::auth_seed(secret);
  for (const int side : {0, 1})
    sides_[static_cast<std::size_t>(side)].device =
        std::make_unique<client::Device>(loop, trust, client::http_map_source(loop, map_url), random,
                                         settings_of(side == 0 ? Role::mac : Role::phone), watch(side));
}

client::DeviceSettings FleetPairing::settings_of(Role role) const {
  client::DeviceSettings settings;
  settings.agent.role = role;
  settings.agent.room = room_;
  settings.key = seed_;
  // Addresses of our own for each pairing, so that no per-client limit is what is measured.
  settings.source = "127.0." + std::to_string(1 + number_ / 250) + "." + std::to_string(1 + number_ % 250);
  return settings;
}

client::Device::Watchers FleetPairing::watch(int side) {
  client::Device::Watchers watchers;
  watchers.connecting = [this, side](const std::string& host) { connecting(side, host); };
  watchers.admitted = [this, side] { admitted(side); };
  watchers.message = [this, side](client::Opcode, ByteView bytes) { received(side, bytes); };
  watchers.ended = [this, side](const client::Ending& ending) { ended(side, ending); };
  return watchers;
}

void FleetPairing::start() {
  for (Side& side : sides_) side.device->start();
}

void FleetPairing::stop() {
  for (Side& side : sides_) side.device->stop();
}

void FleetPairing::chat() {
  for (const int side : {0, 1}) say(side);
}

void FleetPairing::drop_phone() { sides_[1].device->drop(); }

std::string FleetPairing::trouble() const {
  std::string text;
  for (const std::size_t side : {0u, 1u})
    text += std::string(side == 0 ? "mac " : ", phone ") + (sides_[side].live ? "live at " : "not live at ") +
            sides_[side].host + (sides_[side].why.empty() ? "" : " (" + sides_[side].why + ")");
  return text;
}

void FleetPairing::connecting(int side, const std::string& host) {
  Side& us = sides_[static_cast<std::size_t>(side)];
  const TimePoint now = net::monotonic_now();
  if (us.live && whole_) {  // a move abandons the old socket without an end
    whole_ = false;
    broken_at_ = now;
  }
  us.live = false;
  us.host = host;
  ++record_.attempts[host][second_of(now)];
  note_split();
}

void FleetPairing::admitted(int side) {
  Side& us = sides_[static_cast<std::size_t>(side)];
  us.live = true;
  ++us.admission;
  us.sent = 0;
  note_split();
  say(side);
}

void FleetPairing::ended(int side, const client::Ending& ending) {
  Side& us = sides_[static_cast<std::size_t>(side)];
  const Side& other = sides_[static_cast<std::size_t>(1 - side)];
  const TimePoint now = net::monotonic_now();
  us.why = client::describe(ending);
  const auto* closed = std::get_if<client::Closed>(&ending);
  us.evicted = closed != nullptr && closed->code == 4421 && us.live;
  // A hint names a host; the table of endings is by kind.
  ++record_.endings[us.evicted || us.why.starts_with("closed 4421") ? "closed 4421 reshard" : us.why];
  if (us.evicted) {
    us.ended_at = now;
    const bool both = other.evicted && !other.live;
    if (both) {
      record_.eviction_gaps.push_back(now - other.ended_at);
      record_.evictions[us.host].push_back(now);
    }
  }
  if (us.live && whole_) {
    whole_ = false;
    broken_at_ = now;
  }
  us.live = false;
  note_split();
}

void FleetPairing::say(int side) {
  Side& us = sides_[static_cast<std::size_t>(side)];
  if (!us.live) return;
  Bytes message(kMessageBytes);
  const Header header{us.admission, ++us.sent};
  std::memcpy(message.data(), &header.admission, sizeof header.admission);
  std::memcpy(message.data() + sizeof header.admission, &header.number, sizeof header.number);
  (void)us.device->send(client::Opcode::binary, message);
}

void FleetPairing::received(int side, ByteView bytes) {
  if (bytes.size() != kMessageBytes) return;
  Side& us = sides_[static_cast<std::size_t>(side)];
  Header header{};
  std::memcpy(&header.admission, bytes.data(), sizeof header.admission);
  std::memcpy(&header.number, bytes.data() + sizeof header.admission, sizeof header.number);
  const bool same_splice = us.peer_admission == header.admission && us.heard_in == us.admission;
  // Within one splice every number follows the last. What was said before the splice stood is dropped by contract.
  if (same_splice && header.number != us.last_number + 1) record_.lost += header.number - us.last_number - 1;
  if (!same_splice) record_.never_spliced += header.number - 1;
  ++record_.delivered;
  us.peer_admission = header.admission;
  us.heard_in = us.admission;
  us.last_number = header.number;
  if (!same_splice) say(side);  // so that the other end hears of this splice as well
  note_whole();
}

void FleetPairing::note_whole() {
  const Side& mac = sides_[0];
  const Side& phone = sides_[1];
  const bool heard = mac.live && phone.live && mac.heard_in == mac.admission && mac.peer_admission == phone.admission &&
                     phone.heard_in == phone.admission && phone.peer_admission == mac.admission;
  if (whole_ || !heard) return;
  whole_ = true;
  if (was_whole_) record_.recoveries.push_back(net::monotonic_now() - broken_at_);
  was_whole_ = true;
}

void FleetPairing::note_split() {
  const Side& mac = sides_[0];
  const Side& phone = sides_[1];
  const bool apart = mac.live && !phone.host.empty() && mac.host != phone.host;
  const TimePoint now = net::monotonic_now();
  if (apart && split_since_ == TimePoint{}) split_since_ = now;
  if (!apart && split_since_ != TimePoint{}) {
    record_.splits.push_back(now - split_since_);
    split_since_ = {};
  }
}

}  // namespace tandem::app

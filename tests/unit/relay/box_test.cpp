// What one box gives to whom: rates, ceilings, the monthly budget, memory pressure, a reload (1-wire 1.3;
// 3-operations 3.2).
#include "tandem/room/room.hpp"
#include "unit/relay/world.hpp"

namespace tandem::relay::test {
namespace {

const RoomName kBoxRoom = room_in(7, 1);
constexpr ClientKey kAlice{{4, 10, 0, 0, 1}}, kBob{{4, 10, 0, 0, 2}};

Charge upgrade(World& w, const ClientKey& c, const RoomName& room = kBoxRoom) {
  return w.relay.charge(RequestKind::upgrade, room, c, w.now);
}

TEST(Rates, AreKeptPerClientAndKind) {
  Settings s = open_settings();
  s.upgrades_per_minute = 3;
  s.attests_per_minute = 2;
  World w(s);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(upgrade(w, kAlice).refused);
  const Charge c = upgrade(w, kAlice);
  EXPECT_EQ(c.refused, RejectReason::rate_limited);
  EXPECT_EQ(c.retry_after_seconds, 60u);
  EXPECT_FALSE(upgrade(w, kBob).refused);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(w.relay.charge(RequestKind::attest, kBoxRoom, kAlice, w.now).refused);
  EXPECT_EQ(w.relay.charge(RequestKind::attest, kBoxRoom, kAlice, w.now).refused, RejectReason::rate_limited);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(w.relay.charge(RequestKind::other_post, kBoxRoom, kAlice, w.now).refused);
  w.pass(milliseconds(59500));
  EXPECT_EQ(upgrade(w, kAlice).retry_after_seconds, 1u);
  w.pass(milliseconds(500));
  EXPECT_FALSE(upgrade(w, kAlice).refused);
}

TEST(Ceilings, OfSocketsPerClientFreeUpAsSocketsGo) {
  Settings s = open_settings();
  s.sockets_per_client = 2;
  World w(s);
  const SocketId a = w.open(room_in(1, 1), kAlice), b = w.open(room_in(1, 2), kAlice);
  EXPECT_EQ(upgrade(w, kAlice).refused, RejectReason::too_many_connections);
  EXPECT_GE(upgrade(w, kAlice).retry_after_seconds, 1u);
  EXPECT_FALSE(upgrade(w, kBob).refused);
  w.leave(a);
  EXPECT_FALSE(upgrade(w, kAlice).refused);
  w.say(b, "nonsense");
  EXPECT_FALSE(w.clients[b].open());
}

TEST(Ceilings, OfRoomsRefuseNewOnesAndLetJoinsToExistingOnesPass) {
  Settings s = open_settings();
  s.rooms = 2;
  World w(s);
  const SocketId a = w.join(room_in(1, 1), Role::mac);
  w.join(room_in(1, 2), Role::mac);
  EXPECT_EQ(upgrade(w, kBob, room_in(1, 3)).refused, RejectReason::capacity);
  EXPECT_FALSE(upgrade(w, kBob, room_in(1, 2)).refused);
  w.leave(a);
  EXPECT_FALSE(upgrade(w, kBob, room_in(1, 3)).refused) << "what is left of an empty room is no room";
  w.challenge(room_in(1, 4));
  EXPECT_FALSE(upgrade(w, kBob, room_in(1, 3)).refused);
}

TEST(Ceilings, OfSocketsHoldForEverybody) {
  Settings s = open_settings();
  s.sockets = 2;
  World w(s);
  w.join(kBoxRoom, Role::mac);
  EXPECT_FALSE(upgrade(w, kBob).refused);
  w.join(kBoxRoom, Role::phone);
  EXPECT_EQ(upgrade(w, kBob).refused, RejectReason::capacity);
}

TEST(Ceilings, NullMeansOff) {
  Settings s = open_settings();
  s.upgrades_per_minute = s.attests_per_minute = s.sockets_per_client = std::nullopt;
  s.sockets = s.rooms = std::nullopt;
  World w(s);
  for (std::uint32_t i = 0; i < 500; ++i) {
    EXPECT_FALSE(upgrade(w, kAlice, room_in(2, i)).refused);
    w.open(room_in(2, i), kAlice);
  }
}

TEST(Egress, AlertsOnceAtEachMarkAndHardRefusesNewRooms) {
  Settings s = open_settings();
  s.egress_per_month = Settings::Egress{1000, true};
  World w(s);
  w.join(kBoxRoom, Role::mac);
  w.relay.count_egress(799);
  w.pass(seconds(2));
  EXPECT_TRUE(w.seen.of<observed::EgressAlert>().empty());
  w.relay.count_egress(1);
  w.pass(seconds(2));
  ASSERT_EQ(w.seen.of<observed::EgressAlert>().size(), 1u);
  EXPECT_EQ(w.seen.of<observed::EgressAlert>()[0].percent, 80);
  EXPECT_FALSE(upgrade(w, kBob, room_in(1, 3)).refused);
  w.relay.count_egress(200);
  w.pass(seconds(2));
  EXPECT_EQ(w.seen.of<observed::EgressAlert>().back().percent, 100);
  EXPECT_EQ(upgrade(w, kBob, room_in(1, 3)).refused, RejectReason::capacity);
  EXPECT_FALSE(upgrade(w, kBob).refused);
  w.pass(seconds(30));
  EXPECT_EQ(w.seen.of<observed::EgressAlert>().size(), 2u);
  EXPECT_EQ(w.effects_of<effect::StoreEgress>().back().bytes, 1000u);
}

TEST(Egress, GoesOnFromWhatWasStoredAndStartsAgainWithTheMonth) {
  Settings s = open_settings();
  s.egress_per_month = Settings::Egress{1000, true};
  World w(s);
  w.relay.count_egress(100);
  const std::chrono::year_month_day day{std::chrono::floor<std::chrono::days>(w.now.wall)};
  const std::int32_t this_month =
      static_cast<int>(day.year()) * 12 + static_cast<int>(static_cast<unsigned>(day.month())) - 1;
  w.feed(event::EgressLoaded{this_month - 1, 5000});
  EXPECT_EQ(w.relay.snapshot(w.now).egress_bytes_month, 100u);
  w.feed(event::EgressLoaded{this_month, 5000});
  EXPECT_EQ(w.relay.snapshot(w.now).egress_bytes_month, 5100u);
  EXPECT_EQ(upgrade(w, kBob).refused, RejectReason::capacity);
  w.pass(std::chrono::hours(24 * 32));
  EXPECT_EQ(w.relay.snapshot(w.now).egress_bytes_month, 0u);
  EXPECT_FALSE(upgrade(w, kBob).refused);
}

TEST(Shedding, RefusesThenClosesUnadmittedThenRoomsLongestIdleFirstPaced) {
  World w;
  std::vector<SocketId> macs;
  for (std::uint32_t i = 0; i < 5; ++i) {
    macs.push_back(w.join(room_in(1, i), Role::mac));
    w.pass(seconds(1));
  }
  w.traffic(macs[0], 10);  // the oldest is now the latest to be used
  const SocketId pending = w.open(room_in(1, 0));
  w.feed(event::PressureSampled{20});
  EXPECT_FALSE(w.relay.snapshot(w.now).shedding) << "at the mark is not above it";
  w.feed(event::PressureSampled{25});
  EXPECT_TRUE(w.relay.snapshot(w.now).shedding);
  EXPECT_EQ(upgrade(w, kBob, room_in(1, 99)).refused, RejectReason::capacity);
  EXPECT_FALSE(upgrade(w, kBob, room_in(1, 0)).refused);
  EXPECT_TRUE(w.clients[pending].open());
  w.pass(seconds(2));
  w.feed(event::PressureSampled{25});
  EXPECT_CLOSED(w, pending, CloseReason::shedding);
  EXPECT_TRUE(w.clients[macs[1]].open());
  w.pass(seconds(2));
  w.feed(event::PressureSampled{25});
  w.pass(milliseconds(250));
  for (const std::size_t i : {1u, 2u, 3u}) EXPECT_CLOSED(w, macs[i], CloseReason::shedding);
  EXPECT_EQ(w.clients[macs[2]].closed_at - w.clients[macs[1]].closed_at, milliseconds(100));
  EXPECT_TRUE(w.clients[macs[0]].open() && w.clients[macs[4]].open());
  w.feed(event::PressureSampled{15});  // between the marks: nothing more goes, nobody new comes
  w.pass(seconds(1));
  EXPECT_TRUE(w.clients[macs[4]].open());
  EXPECT_EQ(upgrade(w, kBob, room_in(1, 99)).refused, RejectReason::capacity);
  w.feed(event::PressureSampled{9});
  EXPECT_FALSE(upgrade(w, kBob, room_in(1, 99)).refused);
  EXPECT_EQ(w.seen.of<observed::SheddingChanged>().size(), 2u);
}

TEST(Shedding, StopsWhenTheSamplerFallsSilent) {
  World w;
  for (std::uint32_t i = 0; i < 300; ++i) w.join(room_in(1, i), Role::mac);
  for (int i = 0; i < 3; ++i) {
    w.feed(event::PressureSampled{99});
    w.pass(seconds(2));
  }
  w.pass(std::chrono::minutes(5));
  EXPECT_GT(w.relay.snapshot(w.now).rooms.mac_only, 150u);
}

TEST(Reload, TakesEffectWithoutDroppingASocket) {
  World w;
  const JoinKey key;
  const auto [mac, phone] = w.establish(kBoxRoom, key);
  Settings s = open_settings();
  s.established_idle = std::chrono::minutes(30);
  s.attest_required = true;
  s.upgrades_per_minute = 1;
  w.feed(event::SettingsChanged{s});
  EXPECT_TRUE(w.clients[mac].open() && w.clients[phone].open());
  EXPECT_FALSE(upgrade(w, kBob).refused);
  EXPECT_EQ(upgrade(w, kBob).refused, RejectReason::rate_limited);
  w.join(room_in(7, 5), Role::mac);
  EXPECT_REFUSED(w, w.join(room_in(7, 5), Role::phone), CloseReason::ticket_required);
  w.pass(std::chrono::minutes(30));
  EXPECT_CLOSED(w, mac, CloseReason::room_expired);
}

TEST(Explain, SaysWhyAJoinWouldBeRefused) {
  World w(attested_settings());
  using V = std::vector<std::string>;
  Explanation x = w.relay.explain(kBoxRoom, w.now);
  EXPECT_EQ(x.tag, kBoxRoom.tag());
  EXPECT_EQ(x.bucket, Bucket{7});
  EXPECT_EQ(x.state, "none");
  EXPECT_TRUE(x.mac_refusals.empty());
  EXPECT_EQ(x.phone_refusals, (V{"ticket required", "mac offline"}));
  w.join(kBoxRoom, Role::mac);
  x = w.relay.explain(kBoxRoom, w.now);
  EXPECT_EQ(x.state, "mac_only");
  EXPECT_EQ(x.phone_refusals, V{"ticket required"});
}

TEST(Memory, ParkedRoomsCostLittle) { EXPECT_LE(sizeof(room::Room), 320u); }

}  // namespace
}  // namespace tandem::relay::test

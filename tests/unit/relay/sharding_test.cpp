// Owning by the map and letting go slowly, 2-sharding 2.4 and 2.5.
#include "unit/relay/world.hpp"

namespace tandem::relay::test {
namespace {

const std::string kR2 = "relay2.example", kR3 = "relay3.example";

Settings sharded() {
  Settings s = open_settings();
  s.resolved = true;
  return s;
}

struct Pair {
  SocketId mac, phone;
};
Pair pair_in(World& w, std::uint16_t bucket, std::uint32_t n = 0) {
  return {w.join(room_in(bucket, n), Role::mac), w.join(room_in(bucket, n), Role::phone)};
}

TEST(Ownership, WithoutAMapNothingIsOurs) {
  World w(sharded());
  EXPECT_FALSE(w.relay.check_owner(room_in(1)).ours);
  EXPECT_TRUE(w.relay.check_owner(room_in(1)).owner.empty());
  EXPECT_FALSE(w.relay.snapshot(w.now).has_map);
}

TEST(Ownership, DirectModeOwnsEverything) {
  World w;
  for (const std::uint16_t b : std::vector<std::uint16_t>{0, 1, 40000, 65535})
    EXPECT_TRUE(w.relay.check_owner(room_in(b)).ours);
}

TEST(Ownership, FollowsTheMapAndNamesTheOwner) {
  World w(sharded());
  w.map(5, 32768, kHost, kR2);
  EXPECT_TRUE(w.relay.check_owner(room_in(32767)).ours);
  EXPECT_FALSE(w.relay.check_owner(room_in(32768)).ours);
  EXPECT_EQ(w.relay.check_owner(room_in(32768)).owner, kR2);
  EXPECT_EQ(w.floor, MapVersion{5});
  w.map(4, 0, "", kR2);
  EXPECT_EQ(w.relay.last_map_outcome().kind, MapOutcome::Kind::older);
  w.map(5, 0, "", kR2);
  EXPECT_EQ(w.relay.last_map_outcome().kind, MapOutcome::Kind::equal_differs);
  EXPECT_TRUE(w.relay.check_owner(room_in(1)).ours);
  w.map(6, 0, "", "nobody.invalid");
  EXPECT_FALSE(w.relay.check_owner(room_in(1)).ours);
  EXPECT_TRUE(w.relay.check_owner(room_in(1)).owner.empty());
  EXPECT_TRUE(w.seen.of<observed::MapAdopted>().back().owns_nothing);
}

TEST(Relinquish, UnadmittedSocketsCloseAtOnceAndLiveRoomsStay) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  const Pair live = pair_in(w, 50000);
  const SocketId silent = w.open(room_in(50000)), half = w.open(room_in(50001));
  w.hello(half, Role::mac);
  w.map(2, 32768, kHost, kR2);
  for (const SocketId s : {silent, half}) {
    EXPECT_CLOSED(w, s, CloseReason::reshard);
    EXPECT_EQ(w.clients[s].close_text, "reshard relay2.example");
  }
  EXPECT_TRUE(w.clients[live.mac].open() && w.clients[live.phone].open());
  EXPECT_EQ(w.relay.snapshot(w.now).draining.rooms, 1u);
  w.say(half, "{}");  // a proof that was under way finds the socket gone
  EXPECT_FALSE(w.clients[half].admitted);
}

TEST(Relinquish, ASocketThatPassedTheGateJustBeforeIsTurnedAway) {
  World w(sharded());
  w.map(1, 0, kHost, kR2);
  const SocketId s = w.open(room_in(9));
  EXPECT_CLOSED(w, s, CloseReason::reshard);
  EXPECT_EQ(w.clients[s].close_text, "reshard relay2.example");
}

TEST(Relinquish, ReasonsThatWouldBeTooLongOrNobodysNameNoOwner) {
  World w(sharded());
  const std::string host = std::string(60, 'a') + "." + std::string(55, 'b');  // 116: one too many behind "reshard "
  w.map(1, 65536, kHost, kR2);
  const SocketId a = w.open(room_in(40000)), b = w.open(room_in(100));
  w.map(2, 32768, "nobody.invalid", host);
  EXPECT_EQ(w.clients[a].close_text, "reshard");
  EXPECT_EQ(w.clients[b].close_text, "reshard");
  w.map(3, 65536, kHost, kR2);
  const SocketId c = w.open(room_in(40000));
  w.map(4, 32768, kHost, host.substr(1));
  EXPECT_EQ(w.clients[c].close_text, "reshard " + host.substr(1));
  EXPECT_EQ(w.clients[c].close_text.size(), 123u);
}

TEST(Relinquish, RequestsThatWaitForTheRoomAreMisdirected) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  w.store_is_slow = true;
  const RequestId id = w.post(room_in(50000), Endpoint::delete_, "{}");
  w.map(2, 32768, kHost, kR2);
  EXPECT_EQ(w.answers[id].status, 421);
  EXPECT_EQ(w.answers[id].owner, kR2);
  w.answer_from_store();
  const RequestId late = w.post(room_in(50000), Endpoint::attest_challenge, "{}");
  EXPECT_EQ(w.answers[late].status, 421);
  EXPECT_EQ(w.answers[late].owner, kR2);
  w.map(3, 32768, kHost, "nobody.invalid");
  EXPECT_EQ(w.answers[w.post(room_in(50000), Endpoint::delete_, "{}")].owner, "") << "nobody owns it";
}

TEST(Drain, EvictsWholeRoomsEvenlySpacedInTheOrderTheyWereCreated) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  std::vector<Pair> pairs;
  for (std::uint16_t i = 0; i < 20; ++i) pairs.push_back(pair_in(w, static_cast<std::uint16_t>(60000 - i), i));
  const SocketId lone = w.join(room_in(40000, 77), Role::mac);
  w.map(2, 32768, kHost, kR2);
  const TimePoint adopted = w.now.mono;
  w.pass(milliseconds(19999));
  for (const Pair& p : pairs) EXPECT_TRUE(w.clients[p.mac].open());
  w.pass(seconds(5));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_CLOSED(w, pairs[i].mac, CloseReason::reshard);
    EXPECT_EQ(w.clients[pairs[i].mac].closed_at, w.clients[pairs[i].phone].closed_at);
    EXPECT_EQ(w.clients[pairs[i].mac].closed_at - adopted, seconds(20) + milliseconds(100) * static_cast<int>(i));
    EXPECT_EQ(w.clients[pairs[i].phone].close_text, "reshard relay2.example");
  }
  EXPECT_EQ(w.clients[lone].closed_at - adopted, seconds(22));
  EXPECT_EQ(w.seen.of<observed::RoomEvicted>().size(), 21u);
  EXPECT_EQ(w.seen.of<observed::DrainStarted>().size(), 1u);
  ASSERT_EQ(w.seen.of<observed::DrainEnded>().size(), 1u);
  EXPECT_EQ(w.seen.of<observed::DrainEnded>()[0].evicted, 21u);
  EXPECT_EQ(w.relay.snapshot(w.now).draining.buckets, 0u);
}

TEST(Drain, AnotherOwnerRestartsTheWaitAndIsTheOneNamed) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  const Pair p = pair_in(w, 50000);
  w.map(2, 32768, kHost, kR2);
  w.pass(seconds(15));
  w.map(3, 32768, kHost, kR3);
  w.pass(milliseconds(19999));
  EXPECT_TRUE(w.clients[p.mac].open());
  w.map(4, 32700, kHost, kR3);  // this bucket's owner stays: nothing changes
  w.pass(milliseconds(1));
  EXPECT_CLOSED(w, p.mac, CloseReason::reshard);
  EXPECT_EQ(w.clients[p.mac].close_text, "reshard relay3.example");
}

TEST(Drain, NobodysRoomsStayUntilSomebodyOwnsThem) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  const Pair p = pair_in(w, 50000);
  w.map(2, 32768, kHost, "nobody.invalid");
  w.pass(std::chrono::hours(1));
  EXPECT_TRUE(w.clients[p.mac].open());
  w.map(3, 32768, kHost, kR2);
  w.pass(milliseconds(19999));
  EXPECT_TRUE(w.clients[p.mac].open());
  w.pass(milliseconds(1));
  EXPECT_CLOSED(w, p.mac, CloseReason::reshard);
}

TEST(Drain, IsCancelledWhenTheBucketComesBackAndTheRoomsNeverMoved) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  const JoinKey key;
  const auto [mac, phone] = w.establish(room_in(50000), key);
  for (std::uint32_t i = 1; i < 200; ++i) w.join(room_in(50001, i), Role::mac);
  w.map(2, 32768, kHost, kR2);
  w.pass(seconds(21));  // waits are over, evictions under way; the established room was the first
  EXPECT_CLOSED(w, mac, CloseReason::reshard);
  w.map(3, 65536, kHost, kR2);
  const Snapshot s = w.relay.snapshot(w.now);
  EXPECT_EQ(s.draining.rooms, 0u);
  EXPECT_GT(s.rooms.mac_only, 150u);
  w.pass(std::chrono::minutes(2));
  EXPECT_EQ(w.relay.snapshot(w.now).rooms.mac_only, s.rooms.mac_only);
}

TEST(Drain, AVerifierWhoseWaitEndedIsStoredAgainWhenItsRoomStays) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  for (std::uint32_t i = 0; i < 50; ++i) w.join(room_in(50001, i), Role::mac);
  const JoinKey key;
  const RoomName room = room_in(50001, 99);
  const auto [mac, phone] = w.establish(room, key);
  w.map(2, 32768, kHost, kR2);
  w.pass(seconds(21));
  EXPECT_FALSE(w.stored.contains(room)) << "its wait is over";
  EXPECT_TRUE(w.clients[mac].open()) << "its turn has not come";
  w.map(3, 65536, kHost, kR2);
  EXPECT_TRUE(w.stored.contains(room));
  w.leave(mac);
  w.pass(std::chrono::hours(1));
  EXPECT_REFUSED(w, w.join(room, Role::mac), CloseReason::signature_required);
}

TEST(Drain, ARoomThatEmptiesByItselfLeavesTheQueue) {
  World w(sharded());
  w.map(1, 65536, kHost, kR2);
  const Pair p = pair_in(w, 50000), q = pair_in(w, 50001);
  w.map(2, 32768, kHost, kR2);
  w.leave(p.mac);
  EXPECT_CLOSED(w, p.phone, CloseReason::peer_gone);
  EXPECT_EQ(w.relay.snapshot(w.now).draining.rooms, 1u);
  EXPECT_EQ(w.relay.snapshot(w.now).draining.buckets, 1u);
  w.pass(seconds(20));
  EXPECT_CLOSED(w, q.mac, CloseReason::reshard);
}

TEST(Drain, ForgetsVerifiersQuotasAndSecretsOfWhatMoved) {
  Settings s = sharded();
  s.meter.bytes_per_window = 1000;
  World w(s);
  w.map(1, 65536, kHost, kR2);
  const JoinKey key;
  const RoomName live = room_in(50000, 1), empty = room_in(50000, 2), stored_only = room_in(50003, 3);
  const auto [mac, phone] = w.establish(live, key);
  w.traffic(mac, 900);
  const auto [mac2, phone2] = w.establish(empty, key);
  w.traffic(mac2, 900);
  w.leave(mac2);
  w.stored[stored_only] = {key.verifier(), std::nullopt, w.now.wall};
  w.map(2, 32768, kHost, kR2);
  w.pass(milliseconds(19999));
  EXPECT_EQ(w.stored.size(), 3u);
  w.pass(seconds(1));
  EXPECT_TRUE(w.stored.empty());
  w.map(3, 65536, kHost, kR2);
  for (const RoomName& room : {live, empty, stored_only}) {
    const SocketId again = w.join(room, Role::mac);
    EXPECT_TRUE(w.clients[again].admitted);
    EXPECT_EQ(w.traffic(again, 900), room::Verdict::ok);
  }
}

TEST(Drain, RoomsStoredForBucketsLostWhileDownAreForgottenAfterTheDelay) {
  World w(sharded());
  const JoinKey key;
  w.stored[room_in(100)] = {key.verifier(), std::nullopt, w.now.wall};
  w.stored[room_in(50000)] = {key.verifier(), std::nullopt, w.now.wall};
  w.map(7, 32768, kHost, kR2);
  w.pass(seconds(19));
  EXPECT_EQ(w.stored.size(), 2u);
  w.pass(seconds(2));
  EXPECT_TRUE(w.stored.contains(room_in(100)));
  EXPECT_FALSE(w.stored.contains(room_in(50000)));
}

TEST(Drain, AFractionalRateIsKept) {
  Settings s = sharded();
  s.eviction_rate = 0.5;
  World w(s);
  w.map(1, 65536, kHost, kR2);
  std::vector<SocketId> macs;
  for (std::uint32_t i = 0; i < 4; ++i) macs.push_back(w.join(room_in(50000, i), Role::mac));
  w.map(2, 32768, kHost, kR2);
  const TimePoint adopted = w.now.mono;
  EXPECT_EQ(*w.relay.snapshot(w.now).draining.next_eviction, seconds(20));
  EXPECT_EQ(*w.relay.snapshot(w.now).draining.expected_end, seconds(26));
  w.pass(seconds(40));
  for (std::size_t i = 0; i < macs.size(); ++i) {
    EXPECT_EQ(w.clients[macs[i]].closed_at - adopted, seconds(20) + seconds(2) * static_cast<int>(i));
  }
}

TEST(Floor, AMapOfTheFloorsVersionIsAdoptedAfterARestartAndAnOlderOneIsNot) {
  World w(sharded());
  w.feed(event::FloorLoaded{MapVersion{10}});
  w.map(9, 65536, kHost, kR2);
  EXPECT_EQ(w.relay.last_map_outcome().kind, MapOutcome::Kind::older);
  EXPECT_FALSE(w.relay.check_owner(room_in(1)).ours);
  w.map(10, 65536, kHost, kR2);
  EXPECT_EQ(w.relay.last_map_outcome().kind, MapOutcome::Kind::adopted);
  EXPECT_TRUE(w.relay.check_owner(room_in(1)).ours);
}

}  // namespace
}  // namespace tandem::relay::test

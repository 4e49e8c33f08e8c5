// Transcripts of admission, 1-wire 1.4: endpoints and a clock, no sockets.
#include "unit/relay/world.hpp"

#include <set>

namespace tandem::relay::test {
namespace {

const RoomName kRoom = room_in(7, 1);

TEST(Admission, TwoEndpointsMeet) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac);
  EXPECT_EQ(w.clients[mac].messages.back(), R"({"ok":true})");
  EXPECT_TRUE(w.clients[mac].admitted);
  EXPECT_EQ(w.relay.snapshot(w.now).rooms.mac_only, 1u);
  const SocketId phone = w.join(kRoom, Role::phone);
  EXPECT_EQ(base64_decode(w.clients[phone].last()["registrationToken"].get<std::string>())->size(), 24u);
  EXPECT_EQ(w.clients[mac].peer, phone);
  EXPECT_EQ(w.clients[phone].peer, mac);
  const Snapshot s = w.relay.snapshot(w.now);
  EXPECT_EQ(s.rooms.spliced, 1u);
  EXPECT_EQ(s.sockets.admitted, 2u);
  EXPECT_EQ(s.sockets.pending, 0u);
}

TEST(Admission, TheResultComesBeforeAdmissionAndSplice) {
  World w;
  w.join(kRoom, Role::mac);
  w.log.clear();
  const SocketId phone = w.join(kRoom, Role::phone);
  std::vector<std::string> order;
  for (const Effect& e : w.log) {
    if (std::get_if<effect::Send>(&e)) order.push_back("send");
    if (std::get_if<effect::Admit>(&e)) order.push_back("admit");
    if (std::get_if<effect::Splice>(&e)) order.push_back("splice");
  }
  EXPECT_EQ(order, (std::vector<std::string>{"send", "send", "admit", "splice"}));
  EXPECT_TRUE(w.clients[phone].admitted);
}

TEST(Admission, ABadHelloClosesWithoutAMessage) {
  World w;
  const SocketId s = w.open(kRoom);
  w.say(s, R"({"v":2,"role":"mac"})");
  EXPECT_CLOSED(w, s, CloseReason::bad_hello);
  EXPECT_TRUE(w.clients[s].messages.empty());
  EXPECT_TRUE(w.seen.of<observed::AdmissionRefused>().empty());
}

TEST(Admission, ABadProofIsRefused) {
  World w;
  for (const char* proof : {"null", "[]", "{\"sig\":", R"({"sig":"a","sig":"b"})"}) {
    const SocketId s = w.open(kRoom);
    w.hello(s, Role::mac);
    w.say(s, proof);
    EXPECT_REFUSED(w, s, CloseReason::bad_proof);
  }
}

TEST(Admission, NoncesAreNeverTheSame) {
  World w;
  std::set<Bytes> seen;
  for (int i = 0; i < 50; ++i) {
    const SocketId s = w.open(room_in(1, static_cast<std::uint32_t>(i)));
    EXPECT_TRUE(seen.insert(w.hello(s, Role::mac)).second);
  }
}

TEST(Admission, TheFortyFirstProofInTenSecondsIsRateLimited) {
  World w;
  for (int i = 0; i < 40; ++i) EXPECT_REFUSED(w, w.join(kRoom, Role::phone), CloseReason::mac_offline);
  SocketId s = w.open(kRoom);
  w.hello(s, Role::mac);
  w.say(s, "not even JSON");  // the rate comes before everything
  EXPECT_REFUSED(w, s, CloseReason::rate_limited);
  EXPECT_TRUE(w.clients[w.join(room_in(7, 2), Role::mac)].admitted);  // another room is not concerned
  w.pass(milliseconds(9990));
  EXPECT_REFUSED(w, w.join(kRoom, Role::mac), CloseReason::rate_limited);
  w.pass(milliseconds(20));
  EXPECT_TRUE(w.clients[w.join(kRoom, Role::mac)].admitted);
}

TEST(Admission, AFifthPendingSocketClosesTheOldest) {
  World w;
  std::vector<SocketId> s;
  for (int i = 0; i < 4; ++i) s.push_back(w.open(kRoom));
  w.hello(s[0], Role::mac);
  const SocketId fifth = w.open(kRoom);
  EXPECT_CLOSED(w, s[0], CloseReason::too_many_pending);
  EXPECT_TRUE(w.clients[s[1]].open());
  w.hello(fifth, Role::mac);
  w.say(fifth, "{}");
  EXPECT_TRUE(w.clients[fifth].admitted);
  w.open(kRoom);  // the admitted one does not count
  EXPECT_TRUE(w.clients[s[1]].open());
}

TEST(Admission, TimesOutAfterFifteenSecondsNotBefore) {
  World w;
  const SocketId silent = w.open(kRoom), half = w.open(kRoom);
  w.hello(half, Role::phone);
  w.pass(milliseconds(14999));
  EXPECT_TRUE(w.clients[silent].open());
  w.pass(milliseconds(1));
  EXPECT_CLOSED(w, silent, CloseReason::admission_timeout);
  EXPECT_CLOSED(w, half, CloseReason::admission_timeout);
  EXPECT_EQ(w.relay.snapshot(w.now).sockets.pending, 0u);
}

TEST(Admission, AnAdmittedSocketNeverTimesOut) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac);
  w.pass(std::chrono::hours(3));
  EXPECT_TRUE(w.clients[mac].open());
}

TEST(Slots, ANewcomerDisplacesAndThePeerIsLeftAlone) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac), phone = w.join(kRoom, Role::phone);
  const SocketId mac2 = w.join(kRoom, Role::mac);
  EXPECT_CLOSED(w, mac, CloseReason::displaced);
  EXPECT_TRUE(w.clients[phone].open());
  EXPECT_EQ(w.clients[phone].peer, mac2);
  const SocketId phone2 = w.join(kRoom, Role::phone);
  EXPECT_CLOSED(w, phone, CloseReason::displaced);
  EXPECT_EQ(w.clients[mac2].peer, phone2);
  w.leave(phone);  // its end comes later and concerns nobody
  EXPECT_TRUE(w.clients[mac2].open());
  EXPECT_EQ(w.seen.of<observed::Displaced>().size(), 2u);
}

TEST(Slots, NonDisplacingIsTurnedAwayAndSpendsNoCycle) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac);
  EXPECT_REFUSED(w, w.join(kRoom, Role::mac, {}, true), CloseReason::slot_occupied);
  const SocketId phone = w.join(kRoom, Role::phone, {}, true);
  EXPECT_TRUE(w.clients[phone].admitted);
  for (int i = 0; i < 10; ++i) EXPECT_REFUSED(w, w.join(kRoom, Role::phone, {}, true), CloseReason::slot_occupied);
  SocketId last = phone;
  for (int i = 0; i < 7; ++i) last = w.join(kRoom, Role::phone);
  EXPECT_TRUE(w.clients[last].admitted);
  EXPECT_TRUE(w.clients[mac].open());
}

TEST(Slots, WhoeverGoesTakesItsPeerAlong) {
  World w;
  for (const bool mac_goes : {true, false}) {
    const SocketId mac = w.join(kRoom, Role::mac), phone = w.join(kRoom, Role::phone), knocking = w.open(kRoom);
    w.leave(mac_goes ? mac : phone);
    EXPECT_CLOSED(w, (mac_goes ? phone : mac), CloseReason::peer_gone);
    EXPECT_TRUE(w.clients[knocking].open());
    w.leave(knocking);
    EXPECT_EQ(w.relay.snapshot(w.now).sockets.admitted, 0u);
  }
}

TEST(Slots, TheNinthPhoneOfAMacParkTearsThePairingDown) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac);
  SocketId last;
  for (int i = 0; i < 8; ++i) last = w.join(kRoom, Role::phone);
  const SocketId knocking = w.open(kRoom);
  const SocketId ninth = w.join(kRoom, Role::phone);
  for (const SocketId s : {mac, last, knocking, ninth}) EXPECT_CLOSED(w, s, CloseReason::pairing_cycle_cap);
  EXPECT_EQ(w.clients[ninth].messages.size(), 1u) << "the ninth gets no result";
  EXPECT_TRUE(w.clients[w.join(kRoom, Role::mac)].admitted);
  EXPECT_TRUE(w.clients[w.join(kRoom, Role::phone)].admitted);
}

TEST(Slots, ANewMacParkResetsTheCycles) {
  World w;
  w.join(kRoom, Role::mac);
  for (int i = 0; i < 8; ++i) w.join(kRoom, Role::phone);
  const SocketId mac2 = w.join(kRoom, Role::mac);
  for (int i = 0; i < 8; ++i) w.join(kRoom, Role::phone);
  EXPECT_TRUE(w.clients[mac2].open());
  w.join(kRoom, Role::phone);
  EXPECT_CLOSED(w, mac2, CloseReason::pairing_cycle_cap);
}

TEST(Slots, AnEstablishedRoomHasNoCycles) {
  World w;
  const JoinKey key;
  auto [mac, phone] = w.establish(kRoom, key);
  for (int i = 0; i < 20; ++i) phone = w.join_signed(kRoom, Role::phone, key);
  EXPECT_TRUE(w.clients[mac].open());
  EXPECT_TRUE(w.clients[phone].admitted);
}

// ---------------------------------------------------------------- the rendezvous hold

Settings holding() {
  Settings s = open_settings();
  s.rendezvous = seconds(2);
  return s;
}

TEST(Rendezvous, APhoneIsHeldUntilItsMacArrives) {
  World w(holding());
  const SocketId phone = w.join(kRoom, Role::phone);
  EXPECT_EQ(w.clients[phone].messages.size(), 1u);
  w.pass(milliseconds(1900));
  const SocketId mac = w.join(kRoom, Role::mac);
  EXPECT_TRUE(w.clients[phone].admitted);
  EXPECT_EQ(w.clients[mac].peer, phone);
}

TEST(Rendezvous, EndsInMacOfflineAtItsTimeNotBefore) {
  World w(holding());
  const SocketId phone = w.join(kRoom, Role::phone);
  w.pass(milliseconds(1999));
  EXPECT_TRUE(w.clients[phone].open());
  w.pass(milliseconds(1));
  EXPECT_REFUSED(w, phone, CloseReason::mac_offline);
}

TEST(Rendezvous, TheNewestHeldPhoneWinsAndTheOthersAreDisplaced) {
  World w(holding());
  const SocketId early = w.open(kRoom), late = w.open(kRoom), knocking = w.open(kRoom);
  w.hello(early, Role::phone);
  w.hello(late, Role::phone);
  w.say(late, "{}");
  w.say(early, "{}");  // it connected first and proved last: it is the newest to be held
  const SocketId mac = w.join(kRoom, Role::mac);
  EXPECT_TRUE(w.clients[early].admitted);
  EXPECT_CLOSED(w, late, CloseReason::displaced);
  EXPECT_EQ(w.clients[late].messages.size(), 1u);
  EXPECT_TRUE(w.clients[knocking].open());
  EXPECT_EQ(w.clients[mac].peer, early);
}

TEST(Rendezvous, AHeldPhoneCountsAsPending) {
  World w(holding());
  const SocketId held = w.join(kRoom, Role::phone);
  for (int i = 0; i < 4; ++i) w.open(kRoom);
  EXPECT_CLOSED(w, held, CloseReason::too_many_pending);
}

TEST(Rendezvous, AHeldPhoneThatLeavesIsForgotten) {
  World w(holding());
  const SocketId phone = w.join(kRoom, Role::phone);
  w.leave(phone);
  const SocketId mac = w.join(kRoom, Role::mac);
  EXPECT_FALSE(w.clients[phone].admitted);
  EXPECT_EQ(w.clients[mac].peer.value, 0u);
}

// ---------------------------------------------------------------- quota and frame rate

TEST(Quota, CrossingItClosesEverySocketAndWhoeverJoinsBeforeTheWindowEnds) {
  Settings s = open_settings();
  s.meter.bytes_per_window = 1000;
  World w(s);
  const SocketId mac = w.join(kRoom, Role::mac), phone = w.join(kRoom, Role::phone), knocking = w.open(kRoom);
  EXPECT_EQ(w.traffic(mac, 600), room::Verdict::ok);
  EXPECT_EQ(w.traffic(phone, 400), room::Verdict::ok);
  EXPECT_EQ(w.traffic(phone, 1), room::Verdict::daily_quota_exceeded);
  for (const SocketId id : {mac, phone, knocking}) EXPECT_CLOSED(w, id, CloseReason::daily_quota_exceeded);
  w.pass(std::chrono::hours(23));
  const SocketId again = w.join(kRoom, Role::mac);
  EXPECT_CLOSED(w, again, CloseReason::daily_quota_exceeded);
  EXPECT_EQ(w.clients[again].messages.size(), 1u) << "without a result";
  EXPECT_EQ(w.seen.of<observed::QuotaExceeded>().size(), 1u) << "crossings, not sockets";
  w.pass(std::chrono::hours(1) + seconds(1));
  EXPECT_TRUE(w.clients[w.join(kRoom, Role::mac)].admitted);
}

TEST(Quota, SurvivesTheRoomsEmptying) {
  Settings s = open_settings();
  s.meter.bytes_per_window = 1000;
  World w(s);
  const SocketId mac = w.join(kRoom, Role::mac);
  w.traffic(mac, 900);
  w.leave(mac);
  w.pass(std::chrono::hours(2));
  const SocketId mac2 = w.join(kRoom, Role::mac);
  EXPECT_EQ(w.traffic(mac2, 200), room::Verdict::daily_quota_exceeded);
}

TEST(FrameRate, TheOffenderIsClosedForItAndItsPeerBecauseItIsGone) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac), phone = w.join(kRoom, Role::phone);
  EXPECT_EQ(w.traffic(phone, 500, 500), room::Verdict::ok);
  w.traffic(phone, 1, 1);
  EXPECT_CLOSED(w, phone, CloseReason::frame_rate_exceeded);
  EXPECT_CLOSED(w, mac, CloseReason::peer_gone);
  const SocketId mac2 = w.join(kRoom, Role::mac);
  EXPECT_EQ(w.traffic(mac2, 1), room::Verdict::ok) << "whoever comes back at once is not to blame";
}

TEST(FrameRate, AResetOfASocketAlreadyClosedIsIgnored) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac);
  w.traffic(mac, 1, 501);
  w.feed(event::LimitCrossed{mac, room::Verdict::frame_rate_exceeded});
  w.leave(mac);
  EXPECT_EQ(w.relay.snapshot(w.now).sockets.admitted, 0u);
}

// ---------------------------------------------------------------- memory, stop

TEST(Memory, ARoomThatHoldsNothingIsForgotten) {
  World w;
  for (std::uint32_t i = 0; i < 100; ++i) w.leave(w.open(room_in(3, i)));
  EXPECT_EQ(w.relay.explain(room_in(3, 5), w.now).state, "none");
  EXPECT_FALSE(w.relay.explain(room_in(3, 5), w.now).known);
}

TEST(Shutdown, ClosesEverySocketAndLetsNobodyIn) {
  World w;
  const SocketId mac = w.join(kRoom, Role::mac), phone = w.join(kRoom, Role::phone), pending = w.open(room_in(9, 9));
  w.feed(event::ShutdownBegun{});
  for (const SocketId s : {mac, phone, pending}) EXPECT_CLOSED(w, s, CloseReason::server_shutting_down);
  EXPECT_CLOSED(w, w.open(kRoom), CloseReason::server_shutting_down);
  EXPECT_TRUE(w.relay.snapshot(w.now).stopping);
}

}  // namespace
}  // namespace tandem::relay::test

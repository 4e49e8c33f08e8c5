// The POST endpoints and the store behind them, 1-wire 1.6.
#include "tandem/protocol/endpoint.hpp"
#include "unit/relay/world.hpp"

namespace tandem::relay::test {
namespace {

const RoomName kEndpointsRoom = room_in(7, 1);

std::string token_of(World& w, SocketId phone) { return w.clients[phone].last()["registrationToken"]; }

TEST(Challenges, AreCappedPerRoomAndLiveFiveMinutes) {
  World w;
  const Bytes first = w.challenge(kEndpointsRoom);
  EXPECT_EQ(first.size(), 32u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(w.challenge(kEndpointsRoom).size(), 32u);
  const Answer a = w.ask(kEndpointsRoom, Endpoint::attest_challenge, {});
  EXPECT_EQ(a.status, 429);
  EXPECT_EQ(a.error(), "too many outstanding challenges");
  EXPECT_EQ(a.retry_after, 300u);
  EXPECT_EQ(w.challenge(room_in(7, 2)).size(), 32u);
  w.pass(seconds(299));
  EXPECT_EQ(w.ask(kEndpointsRoom, Endpoint::attest_challenge, {}).status, 429);
  w.pass(seconds(1));
  EXPECT_EQ(w.challenge(kEndpointsRoom).size(), 32u);
}

TEST(Bodies, ThatAreNoObjectAreBadJsonButChallengesIgnoreTheirs) {
  World w;
  for (const char* body : {"", "[]", "null", "{", "{}{}"}) {
    for (const Endpoint e : {Endpoint::attest, Endpoint::register_, Endpoint::delete_}) {
      const Answer a = w.answers[w.post(kEndpointsRoom, e, body)];
      EXPECT_EQ(a.status, 400);
      EXPECT_EQ(a.error(), "bad json");
    }
    EXPECT_EQ(w.answers[w.post(kEndpointsRoom, Endpoint::attest_challenge, body)].status, 200);
  }
}

TEST(Register, FirstVerifierWinsAndLaterJoinsMustSign) {
  World w;
  const JoinKey key(1), other(2);
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  EXPECT_EQ(w.clients[mac].peer, phone) << "the pair goes on";
  EXPECT_EQ(w.seen.of<observed::RoomEstablished>().size(), 1u);
  EXPECT_REFUSED(w, w.join(kEndpointsRoom, Role::mac), CloseReason::signature_required);
  EXPECT_REFUSED(w, w.join_signed(kEndpointsRoom, Role::mac, other), CloseReason::bad_signature);
  EXPECT_REFUSED(w, w.join(kEndpointsRoom, Role::mac, {"not base64!", std::nullopt}), CloseReason::bad_signature);
  EXPECT_TRUE(w.clients[w.join_signed(kEndpointsRoom, Role::mac, key)].admitted);
  const SocketId phone2 = w.join_signed(kEndpointsRoom, Role::phone, key);
  EXPECT_EQ(w.register_key(kEndpointsRoom, token_of(w, phone2), other).error(), "already registered");
  EXPECT_EQ(w.stored.at(kEndpointsRoom).verifier, key.verifier());
}

TEST(Register, ErrorsComeInTheOrderOfTheContract) {
  World w;
  const JoinKey key;
  using nlohmann::json;
  const auto error = [&](const json& body) { return w.ask(kEndpointsRoom, Endpoint::register_, body).error(); };
  EXPECT_EQ(error({{"registrationToken", "x"}}), "missing verifier");
  EXPECT_EQ(error({{"verifier", 5}}), "missing verifier");
  EXPECT_EQ(error({{"verifier", ""}}), "bad verifier");
  EXPECT_EQ(error({{"verifier", base64_encode(Bytes(31, 1))}}), "bad verifier");
  EXPECT_EQ(error({{"verifier", base64_encode(Bytes(32, 0))}}), "bad verifier") << "of low order";
  EXPECT_EQ(error({{"verifier", base64_encode(Bytes(32, 0xff))}}), "bad verifier") << "not canonical";
  EXPECT_EQ(error({{"verifier", key.verifier_b64()}}), "token required");
  EXPECT_EQ(error({{"verifier", key.verifier_b64()}, {"registrationToken", ""}}), "bad token");
  EXPECT_EQ(error({{"verifier", key.verifier_b64()}, {"registrationToken", base64_encode(Bytes(24, 0))}}), "bad token");
}

TEST(Register, ATokenBelongsToItsRoomAndLivesFiveMinutes) {
  World w;
  w.join(kEndpointsRoom, Role::mac);
  const std::string token = token_of(w, w.join(kEndpointsRoom, Role::phone));
  EXPECT_EQ(w.register_key(room_in(7, 2), token, JoinKey()).error(), "bad token");
  w.pass(seconds(300));
  EXPECT_EQ(w.register_key(kEndpointsRoom, token, JoinKey()).error(), "bad token");
}

TEST(Register, TheOldestTokenGoesWhenSixteenLive) {
  World w;
  std::vector<std::string> tokens;
  for (int park = 0; park < 3; ++park) {
    w.join(kEndpointsRoom, Role::mac);
    for (int i = 0; i < 7 && tokens.size() < 17; ++i)
      tokens.push_back(token_of(w, w.join(kEndpointsRoom, Role::phone)));
  }
  ASSERT_EQ(tokens.size(), 17u);
  EXPECT_EQ(w.register_key(kEndpointsRoom, tokens[0], JoinKey()).error(), "bad token");
  EXPECT_EQ(w.register_key(kEndpointsRoom, tokens[1], JoinKey()).status, 200);
}

TEST(Register, ABurstHasOneWinnerThoughTheStoreIsSlow) {
  World w;
  w.join(kEndpointsRoom, Role::mac);
  std::vector<std::string> tokens;
  for (int i = 0; i < 6; ++i) tokens.push_back(token_of(w, w.join(kEndpointsRoom, Role::phone)));
  w.store_is_slow = true;
  std::vector<RequestId> ids;
  for (std::uint8_t i = 0; i < 6; ++i) {
    const nlohmann::json body = {{"registrationToken", tokens[i]}, {"verifier", JoinKey(i).verifier_b64()}};
    ids.push_back(w.post(kEndpointsRoom, Endpoint::register_, body.dump()));
  }
  EXPECT_FALSE(w.answers.contains(ids[0])) << "no 200 before it is durable";
  for (std::size_t i = 1; i < 6; ++i) EXPECT_EQ(w.answers[ids[i]].error(), "already registered");
  w.answer_from_store();
  EXPECT_EQ(w.answers[ids[0]].status, 200);
}

TEST(Register, WithoutAStoreItPromisesMemoryAndKeepsIt) {
  World w;
  w.store_works = false;
  const JoinKey key;
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  w.leave(mac);
  w.pass(std::chrono::hours(1));
  EXPECT_REFUSED(w, w.join(kEndpointsRoom, Role::mac), CloseReason::signature_required);
  EXPECT_TRUE(w.clients[w.join_signed(kEndpointsRoom, Role::mac, key)].admitted);
}

TEST(Register, HeldUnsignedPhonesAreTurnedAwayWhenTheRoomIsEstablished) {
  Settings s = open_settings();
  s.rendezvous = seconds(2);
  World w(s);
  const SocketId mac = w.join(kEndpointsRoom, Role::mac);
  const std::string token = token_of(w, w.join(kEndpointsRoom, Role::phone));
  w.leave(mac);
  const SocketId held = w.join(kEndpointsRoom, Role::phone);
  EXPECT_TRUE(w.clients[held].open());
  EXPECT_EQ(w.register_key(kEndpointsRoom, token, JoinKey()).status, 200);
  EXPECT_REFUSED(w, held, CloseReason::signature_required);
}

TEST(Store, ProofsWaitForTheRoomButHelloesDoNot) {
  World w;
  const JoinKey key;
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  w.leave(mac);
  w.pass(std::chrono::minutes(10));
  EXPECT_FALSE(w.relay.explain(kEndpointsRoom, w.now).known) << "the room left memory";
  w.store_is_slow = true;
  const SocketId s = w.open(kEndpointsRoom);
  EXPECT_EQ(w.hello(s, Role::mac).size(), 32u) << "the nonce comes whatever the room's state";
  w.say(s, "{}");
  EXPECT_EQ(w.clients[s].messages.size(), 1u);
  w.answer_from_store();
  EXPECT_REFUSED(w, s, CloseReason::signature_required);
}

TEST(Store, RequestsWaitForTheRoomToo) {
  World w;
  w.establish(kEndpointsRoom, JoinKey(1));
  for (auto& [id, c] : w.clients) w.leave(id);
  w.pass(std::chrono::minutes(10));
  w.store_is_slow = true;
  const nlohmann::json body = {{"registrationToken", "x"}, {"verifier", JoinKey(2).verifier_b64()}};
  const RequestId a = w.post(kEndpointsRoom, Endpoint::register_, body.dump());
  const RequestId b = w.post(kEndpointsRoom, Endpoint::delete_, "{}");
  const RequestId gone = w.post(kEndpointsRoom, Endpoint::delete_, "{}");
  w.feed(event::RequestGone{gone});
  EXPECT_FALSE(w.answers.contains(a) || w.answers.contains(b));
  w.answer_from_store();
  EXPECT_EQ(w.answers[a].error(), "already registered");
  EXPECT_EQ(w.answers[b].error(), "signature required");
  EXPECT_FALSE(w.answers.contains(gone));
}

TEST(Store, ARequestWaitsForItNoLongerThanItsTimeout) {
  World w;
  w.store_is_slow = true;
  const RequestId first = w.post(kEndpointsRoom, Endpoint::delete_, "{}");
  w.pass(seconds(4));
  const RequestId second = w.post(kEndpointsRoom, Endpoint::delete_, "{}");
  w.pass(seconds(6) - milliseconds(1));
  EXPECT_FALSE(w.answers.contains(first));
  w.pass(milliseconds(1));
  EXPECT_EQ(w.answers[first].status, 500);
  EXPECT_EQ(w.answers[first].error(), "state unavailable");
  EXPECT_EQ(w.seen.of<observed::StateError>().size(), 1u);
  EXPECT_FALSE(w.answers.contains(second)) << "each has its own time";
  w.answer_from_store();
  EXPECT_EQ(w.answers[second].error(), "not established");
  w.pass(std::chrono::minutes(1));
  EXPECT_EQ(w.seen.of<observed::StateError>().size(), 1u);
}

TEST(Store, ThatNeverCommitsLeavesARegistrationToMemoryAndADeletionUnsure) {
  World w;
  const JoinKey key;
  w.join(kEndpointsRoom, Role::mac);
  const std::string token = token_of(w, w.join(kEndpointsRoom, Role::phone));
  w.store_is_slow = true;
  const nlohmann::json body = {{"registrationToken", token}, {"verifier", key.verifier_b64()}};
  const RequestId registration = w.post(kEndpointsRoom, Endpoint::register_, body.dump());
  w.pass(seconds(9));
  EXPECT_FALSE(w.answers.contains(registration)) << "no 200 while it may still become durable";
  w.pass(seconds(1));
  EXPECT_EQ(w.answers[registration].status, 200);
  EXPECT_EQ(w.seen.of<observed::StateError>().size(), 1u);
  EXPECT_REFUSED(w, w.join(kEndpointsRoom, Role::mac), CloseReason::signature_required);
  w.answer_from_store();

  w.store_is_slow = true;
  const Bytes c = w.challenge(kEndpointsRoom);
  const nlohmann::json deletion_body = {{"challenge", base64_encode(c)},
                                        {"signature", key.deletion(c, kEndpointsRoom)}};
  const RequestId deletion = w.post(kEndpointsRoom, Endpoint::delete_, deletion_body.dump());
  w.pass(seconds(10));
  EXPECT_EQ(w.answers[deletion].status, 500);
  EXPECT_TRUE(w.clients[w.join(kEndpointsRoom, Role::mac)].admitted) << "memory is wiped";
}

TEST(Store, AnAnswerFromBeforeTheRoomWasForgottenIsNotBelieved) {
  World w;
  w.store_is_slow = true;
  const SocketId first = w.open(kEndpointsRoom);
  w.leave(first);
  const SocketId second = w.open(kEndpointsRoom);
  w.hello(second, Role::mac);
  w.say(second, "{}");
  ASSERT_EQ(w.from_store.size(), 2u);
  StoredRoom old{JoinKey().verifier(), std::nullopt, w.now.wall};
  w.from_store[0] = event::RoomLoaded{kEndpointsRoom, old};
  w.answer_from_store();
  EXPECT_TRUE(w.clients[second].admitted);
}

TEST(Delete, ClosesEverybodyAndTheRoomPairsAgain) {
  World w;
  const JoinKey key(1), next(2);
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  const SocketId knocking = w.open(kEndpointsRoom);
  const Answer a = w.delete_room(kEndpointsRoom, key);
  EXPECT_EQ(a.status, 200);
  for (const SocketId s : {mac, phone, knocking}) EXPECT_CLOSED(w, s, CloseReason::room_deleted);
  EXPECT_FALSE(w.stored.contains(kEndpointsRoom));
  EXPECT_EQ(w.delete_room(kEndpointsRoom, key).error(), "not established");
  w.establish(kEndpointsRoom, next);
  EXPECT_EQ(w.stored.at(kEndpointsRoom).verifier, next.verifier());
}

TEST(Delete, ForgetsTokensAndChallengesButNotTheQuota) {
  Settings s = open_settings();
  s.meter.bytes_per_window = 1000;
  World w(s);
  const JoinKey key;
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  w.traffic(mac, 900);
  const std::string token = token_of(w, w.join_signed(kEndpointsRoom, Role::phone, key));
  EXPECT_EQ(w.delete_room(kEndpointsRoom, key).status, 200);
  EXPECT_EQ(w.register_key(kEndpointsRoom, token, key).error(), "bad token");
  const SocketId mac2 = w.join(kEndpointsRoom, Role::mac);
  EXPECT_EQ(w.traffic(mac2, 200), room::Verdict::daily_quota_exceeded);
}

TEST(Delete, ErrorsComeInTheOrderOfTheContractAndAChallengeIsSpentByItsTry) {
  World w;
  const JoinKey key;
  using nlohmann::json;
  const auto error = [&](const json& body) { return w.ask(kEndpointsRoom, Endpoint::delete_, body).error(); };
  EXPECT_EQ(error(json::object()), "not established");
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  const Bytes c = w.challenge(kEndpointsRoom);
  const std::string c64 = base64_encode(c);
  EXPECT_EQ(error({{"challenge", c64}}), "signature required");
  EXPECT_EQ(error({{"signature", "x"}}), "signature required");
  EXPECT_EQ(error({{"challenge", base64_encode(Bytes(32, 0))}, {"signature", "x"}}), "bad challenge");
  EXPECT_EQ(error({{"challenge", c64}, {"signature", JoinKey(9).deletion(c, kEndpointsRoom)}}), "bad signature");
  EXPECT_EQ(error({{"challenge", c64}, {"signature", key.deletion(c, kEndpointsRoom)}}), "bad challenge");
  EXPECT_TRUE(w.clients[mac].open() && w.clients[phone].open());
}

TEST(Delete, WithoutAStoreMemoryIsWipedAndTheAnswerSaysSo) {
  World w;
  const JoinKey key;
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  w.store_works = false;
  const Answer a = w.delete_room(kEndpointsRoom, key);
  EXPECT_EQ(a.status, 500);
  EXPECT_EQ(a.error(), "state unavailable");
  EXPECT_CLOSED(w, mac, CloseReason::room_deleted);
  w.pass(std::chrono::hours(1));
  EXPECT_TRUE(w.clients[w.join(kEndpointsRoom, Role::mac)].admitted);
}

// Thirty days made three hours: virtual time is cheap, not free.
constexpr Duration kIdle = std::chrono::hours(3);
Settings brief() {
  Settings s = open_settings();
  s.established_idle = kIdle;
  return s;
}

TEST(Retention, AnUnusedRoomExpiresAtItsTimeNotBefore) {
  World w(brief());
  const JoinKey key;
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  const SocketId knocking = w.open(kEndpointsRoom);
  w.leave(knocking);
  w.pass(kIdle - seconds(1));
  EXPECT_TRUE(w.clients[mac].open());
  w.pass(seconds(1));
  EXPECT_CLOSED(w, mac, CloseReason::room_expired);
  EXPECT_CLOSED(w, phone, CloseReason::room_expired);
  EXPECT_FALSE(w.stored.contains(kEndpointsRoom));
  EXPECT_EQ(w.seen.of<observed::RoomExpired>().size(), 1u);
}

TEST(Retention, ASignedJoinIsContactAndAnUnsignedOneIsNot) {
  World w(brief());
  const JoinKey key;
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  w.pass(kIdle * 2 / 3);
  w.join(kEndpointsRoom, Role::mac);
  w.join_signed(kEndpointsRoom, Role::phone, key);
  w.pass(kIdle * 2 / 3);
  EXPECT_TRUE(w.clients[mac].open());
  w.join(kEndpointsRoom, Role::mac);
  w.pass(kIdle / 3);
  EXPECT_CLOSED(w, mac, CloseReason::room_expired);
}

TEST(Retention, AStepOfTheWallClockExpiresNothing) {
  World w(brief());
  const JoinKey key;
  const auto [mac, phone] = w.establish(kEndpointsRoom, key);
  w.establish(room_in(8, 8), key);
  for (int i = 0; i < 2; ++i) w.leave(SocketId{w.last_socket - static_cast<std::uint64_t>(i)});
  w.pass(std::chrono::minutes(20));  // that room is in the store alone
  w.step_wall(std::chrono::hours(24 * 365 * 3));
  w.pass(std::chrono::minutes(20));
  EXPECT_TRUE(w.clients[mac].open());
  EXPECT_TRUE(w.stored.contains(room_in(8, 8)));
  EXPECT_REFUSED(w, w.join(room_in(8, 8), Role::mac), CloseReason::signature_required);
  w.step_wall(-std::chrono::hours(24 * 365 * 6));
  w.pass(std::chrono::minutes(20));
  EXPECT_TRUE(w.clients[mac].open());
  EXPECT_TRUE(w.clients[w.join_signed(room_in(8, 8), Role::mac, key)].admitted);
}

TEST(Retention, ARoomThatIsLoadedTooLateHasExpired) {
  World w(brief());
  const JoinKey key;
  w.stored[kEndpointsRoom] = {key.verifier(), std::nullopt, w.now.wall - std::chrono::hours(4)};
  EXPECT_TRUE(w.clients[w.join(kEndpointsRoom, Role::mac)].admitted);
  EXPECT_FALSE(w.stored.contains(kEndpointsRoom));
}

TEST(Retention, AStampFromTheFutureCountsAsNow) {
  World w(brief());
  const JoinKey key;
  w.stored[kEndpointsRoom] = {key.verifier(), std::nullopt, w.now.wall + std::chrono::hours(24 * 365 * 50)};
  const SocketId mac = w.join_signed(kEndpointsRoom, Role::mac, key);
  EXPECT_TRUE(w.clients[mac].admitted);
  w.pass(kIdle);
  EXPECT_CLOSED(w, mac, CloseReason::room_expired);
}

}  // namespace
}  // namespace tandem::relay::test

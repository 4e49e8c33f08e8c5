// The attested way in: tickets, tokens that carry a key, assertions and their counters (1-wire 1.4, 1.6).
#include "tandem/protocol/attest.hpp"
#include "unit/protocol/attest_mint.hpp"
#include "unit/relay/world.hpp"

namespace tandem::relay::test {
namespace {

namespace mint = protocol::mint;
const RoomName kAttestedRoom = room_in(7, 1);

struct Device {
  mint::Key key = mint::new_key();
  std::uint32_t counter = 0;

  [[nodiscard]] AttestedKey attested() const {
    AttestedKey k;
    k.point = mint::point_of(key);
    k.id = sha256(k.point);
    return k;
  }
  [[nodiscard]] std::string assertion(ByteView challenge, std::uint32_t n) const {
    return base64_encode(mint::assertion(key, "TEAMID.example", n, protocol::client_data_hash(challenge, kOrigin)));
  }
};

// What the worker would say is put in its mouth; the chain itself is tested in protocol/.
Answer attest(World& w, const RoomName& room, const Device& device, bool good = true) {
  const Bytes challenge = w.challenge(room);
  const nlohmann::json body = {{"challenge", base64_encode(challenge)}, {"attestationObject", "AAAA"}};
  const RequestId id = w.post(room, Endpoint::attest, body.dump());
  if (w.attestations.empty()) return w.answers[id];
  const auto asked = w.attestations.back();
  w.attestations.pop_back();
  EXPECT_EQ(asked.client_data_hash, protocol::client_data_hash(challenge, kOrigin));
  AttestedKey key = device.attested();
  if (const auto known = w.counters.find(key.id); known != w.counters.end()) key.counter = known->second;
  w.feed(event::AttestationVerified{asked.request, good ? std::optional(key) : std::nullopt, "wrong_app"});
  return w.answers[id];
}

std::string ticket(World& w, const RoomName& room, const Device& device) {
  const Answer a = attest(w, room, device);
  EXPECT_EQ(a.status, 200) << a.body;
  return a.body["ticket"];
}

// A phone that came in by a ticket, beside a mac: its registration token.
std::string token(World& w, const RoomName& room, const Device& device) {
  w.join(room, Role::mac);
  const SocketId phone = w.join(room, Role::phone, {std::nullopt, ticket(w, room, device)});
  EXPECT_TRUE(w.clients[phone].admitted);
  return w.clients[phone].last()["registrationToken"];
}

Answer enroll(World& w, const RoomName& room, const std::string& tok, const Device& device, std::uint32_t counter,
              const JoinKey& key = JoinKey()) {
  const Bytes c = w.challenge(room);
  return w.ask(room, Endpoint::register_,
               {{"registrationToken", tok},
                {"verifier", key.verifier_b64()},
                {"challenge", base64_encode(c)},
                {"assertion", device.assertion(c, counter)}});
}

TEST(Tickets, LetOnePhoneInOnceAndAMacNeedsNone) {
  World w(attested_settings());
  const SocketId mac = w.join(kAttestedRoom, Role::mac, {"any sig is ignored", std::nullopt});
  EXPECT_TRUE(w.clients[mac].admitted);
  EXPECT_EQ(w.seen.of<observed::Admitted>().back().via, Via::park);
  EXPECT_REFUSED(w, w.join(kAttestedRoom, Role::phone), CloseReason::ticket_required);
  EXPECT_REFUSED(w, w.join(kAttestedRoom, Role::phone, {"c2ln", std::nullopt}), CloseReason::ticket_required);
  EXPECT_REFUSED(w, w.join(kAttestedRoom, Role::phone, {std::nullopt, ""}), CloseReason::bad_ticket);
  const std::string t = ticket(w, kAttestedRoom, Device());
  EXPECT_EQ(base64_decode(t)->size(), 24u);
  EXPECT_REFUSED(w, w.join(room_in(7, 2), Role::phone, {std::nullopt, t}), CloseReason::bad_ticket);
  EXPECT_TRUE(w.clients[w.join(kAttestedRoom, Role::phone, {std::nullopt, t})].admitted);
  EXPECT_EQ(w.seen.of<observed::Admitted>().back().via, Via::ticket);
  EXPECT_REFUSED(w, w.join(kAttestedRoom, Role::phone, {std::nullopt, t}), CloseReason::bad_ticket);
}

TEST(Tickets, AreSpentByTheAttemptWhateverFollows) {
  World w(attested_settings());
  const std::string t = ticket(w, kAttestedRoom, Device());
  EXPECT_REFUSED(w, w.join(kAttestedRoom, Role::phone, {std::nullopt, t}), CloseReason::mac_offline);
  w.join(kAttestedRoom, Role::mac);
  EXPECT_REFUSED(w, w.join(kAttestedRoom, Role::phone, {std::nullopt, t}), CloseReason::bad_ticket);
}

TEST(Tickets, OfTwoSocketsWithOneTicketOneWinsTenThousandTimes) {
  World w(attested_settings());
  const Device device;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const RoomName room = room_in(3, i);
    const SocketId mac = w.join(room, Role::mac);
    const protocol::Proof proof{std::nullopt, ticket(w, room, device)};
    const SocketId a = w.open(room), b = w.open(room);
    w.hello(a, Role::phone);
    w.hello(b, Role::phone);
    const bool a_first = i % 2 == 0;
    w.say(a_first ? a : b, protocol::proof_message(proof));
    w.say(a_first ? b : a, protocol::proof_message(proof));
    ASSERT_NE(w.clients[a].admitted, w.clients[b].admitted);
    w.leave(mac);
    w.pass(std::chrono::minutes(6));
    w.clients.clear();
    w.answers.clear();
    w.log.clear();
    w.seen.all.clear();
  }
}

TEST(Tickets, AreCappedAtSixteenPerRoom) {
  World w(attested_settings());
  const Device device;
  for (int i = 0; i < 16; ++i) EXPECT_EQ(attest(w, kAttestedRoom, device).status, 200);
  const Answer a = attest(w, kAttestedRoom, device);
  EXPECT_EQ(a.status, 429);
  EXPECT_EQ(a.error(), "too many outstanding tickets");
  EXPECT_GE(a.retry_after, 1u);
  EXPECT_EQ(attest(w, room_in(7, 2), device).status, 200);
}

TEST(Attestations, ErrorsComeInTheOrderOfTheContract) {
  World off;
  EXPECT_EQ(off.ask(kAttestedRoom, Endpoint::attest, nlohmann::json::object()).error(), "attestation disabled");
  World w(attested_settings());
  using nlohmann::json;
  EXPECT_EQ(w.ask(kAttestedRoom, Endpoint::attest, {{"challenge", "x"}}).error(), "missing fields");
  EXPECT_EQ(w.ask(kAttestedRoom, Endpoint::attest, {{"challenge", "x"}, {"attestationObject", ""}}).error(),
            "bad challenge");
  const Bytes c = w.challenge(kAttestedRoom);
  const json bad_base64 = {{"challenge", base64_encode(c)}, {"attestationObject", "A"}};
  EXPECT_EQ(w.ask(kAttestedRoom, Endpoint::attest, bad_base64).error(), "attestation rejected");
  EXPECT_EQ(w.ask(kAttestedRoom, Endpoint::attest, bad_base64).error(), "bad challenge") << "spent all the same";
  EXPECT_EQ(attest(w, kAttestedRoom, Device(), false).error(), "attestation rejected");
  EXPECT_EQ(w.seen.of<observed::Attest>().back().detail, "wrong_app");
}

TEST(Attestations, AreAllRejectedWhereNoAppIsNamed) {
  Settings s = attested_settings();
  s.attest_configured = false;
  World w(s);
  const Answer a = attest(w, kAttestedRoom, Device());
  EXPECT_EQ(a.status, 403);
  EXPECT_EQ(a.error(), "attestation rejected");
  EXPECT_TRUE(w.attestations.empty());
}

TEST(Attestations, ThatTheWorkerHasNoRoomForAreToldToComeAgain) {
  World w(attested_settings());
  const Bytes c = w.challenge(kAttestedRoom);
  const nlohmann::json body = {{"challenge", base64_encode(c)}, {"attestationObject", "AAAA"}};
  const RequestId id = w.post(kAttestedRoom, Endpoint::attest, body.dump());
  w.feed(event::AttestationVerified{id, std::nullopt, event::kAttestationBusy});
  EXPECT_EQ(w.answers[id].status, 503);
  EXPECT_EQ(w.answers[id].error(), "capacity");
}

TEST(Attestations, ThatTheWorkerNeverFinishesAreToldToComeAgain) {
  World w(attested_settings());
  const Bytes c = w.challenge(kAttestedRoom);
  const nlohmann::json body = {{"challenge", base64_encode(c)}, {"attestationObject", "AAAA"}};
  const RequestId id = w.post(kAttestedRoom, Endpoint::attest, body.dump());
  w.pass(seconds(10));
  EXPECT_EQ(w.answers[id].status, 503);
  EXPECT_EQ(w.answers[id].retry_after, 1u);
  w.feed(event::AttestationVerified{id, Device().attested(), {}});
  EXPECT_EQ(w.answers[id].status, 503) << "answered once";
}

TEST(Attestations, WhoseClientLeftAreDropped) {
  World w(attested_settings());
  const Bytes c = w.challenge(kAttestedRoom);
  const nlohmann::json body = {{"challenge", base64_encode(c)}, {"attestationObject", "AAAA"}};
  const RequestId id = w.post(kAttestedRoom, Endpoint::attest, body.dump());
  w.feed(event::RequestGone{id});
  w.feed(event::AttestationVerified{id, Device().attested(), {}});
  EXPECT_FALSE(w.answers.contains(id));
}

TEST(Assertions, RegisterTheKeyOfTheTicketAndNoOther) {
  World w(attested_settings());
  const Device device, other;
  const std::string tok = token(w, kAttestedRoom, device);
  EXPECT_EQ(enroll(w, kAttestedRoom, tok, other, 1).error(), "assertion rejected: bad signature");
  EXPECT_EQ(enroll(w, kAttestedRoom, tok, device, 1).status, 200) << "a failed assertion spends no token";
  EXPECT_EQ(w.stored.at(kAttestedRoom).registrant, device.attested().id);
  EXPECT_EQ(w.counters.at(device.attested().id), 1u);
}

TEST(Assertions, ErrorsComeInTheOrderOfTheContract) {
  World w(attested_settings());
  const Device device;
  const std::string tok = token(w, kAttestedRoom, device), v = JoinKey().verifier_b64();
  using nlohmann::json;
  const auto error = [&](const json& body) { return w.ask(kAttestedRoom, Endpoint::register_, body).error(); };
  EXPECT_EQ(error({{"registrationToken", tok}, {"verifier", v}}), "assertion required");
  EXPECT_EQ(error({{"registrationToken", tok}, {"verifier", v}, {"challenge", ""}}), "assertion required");
  EXPECT_EQ(error({{"registrationToken", tok}, {"verifier", v}, {"challenge", ""}, {"assertion", ""}}),
            "bad challenge");
  const std::string c = base64_encode(w.challenge(kAttestedRoom));
  EXPECT_TRUE(error({{"registrationToken", tok}, {"verifier", v}, {"challenge", c}, {"assertion", "A"}})
                  .starts_with("assertion rejected: "));
  EXPECT_EQ(error({{"registrationToken", tok}, {"verifier", v}, {"challenge", c}, {"assertion", "A"}}),
            "bad challenge");
}

TEST(Assertions, AnUnattestedTokenRegistersNothingOnceAttestationIsRequired) {
  World w;
  w.join(kAttestedRoom, Role::mac);
  const SocketId phone = w.join(kAttestedRoom, Role::phone);
  const std::string tok = w.clients[phone].last()["registrationToken"];
  w.feed(event::SettingsChanged{attested_settings()});
  EXPECT_EQ(enroll(w, kAttestedRoom, tok, Device(), 1).error(), "token not attested");
}

TEST(Counters, StrictlyIncreasePerKeyOverAllRoomsFromOne) {
  World w(attested_settings());
  const Device device;
  std::string tok = token(w, kAttestedRoom, device);
  EXPECT_EQ(enroll(w, kAttestedRoom, tok, device, 0).error(), "stale assertion");
  EXPECT_EQ(enroll(w, kAttestedRoom, tok, device, 100).status, 200);
  const RoomName second = room_in(9, 2);
  tok = token(w, second, device);
  for (const std::uint32_t n : {100u, 99u, 1u}) EXPECT_EQ(enroll(w, second, tok, device, n).error(), "stale assertion");
  EXPECT_EQ(enroll(w, second, tok, device, 101).status, 200);
}

TEST(Counters, AreRememberedByTheStoreWhenMemoryHasForgotten) {
  World w(attested_settings());
  const Device device;
  EXPECT_EQ(enroll(w, kAttestedRoom, token(w, kAttestedRoom, device), device, 9).status, 200);
  World later(attested_settings());
  later.counters = w.counters;
  const std::string tok = token(later, kAttestedRoom, device);
  EXPECT_EQ(enroll(later, kAttestedRoom, tok, device, 9).error(), "stale assertion");
  EXPECT_EQ(enroll(later, kAttestedRoom, tok, device, 10).status, 200);
}

}  // namespace
}  // namespace tandem::relay::test

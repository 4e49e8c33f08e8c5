// Endpoints that follow the client rules in short, and strangers who follow none.
#include "sim/sim.hpp"
#include "tandem/protocol/admission.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace tandem::sim {

using nlohmann::json;

// ---------------------------------------------------------------- the wire between: in order, with delays

void Sim::send_up(const std::shared_ptr<Connection>& c, std::string text) {
  c->last_up = std::max(c->last_up, now_ + some(milliseconds(120)));
  at(c->last_up, [this, c, text = std::move(text)]() mutable { deliver_up(c, std::move(text)); });
}

void Sim::send_down(const std::shared_ptr<Connection>& c, std::string text) {
  c->last_down = std::max(c->last_down, now_ + some(milliseconds(120)));
  at(c->last_down, [this, c, text = std::move(text)] {
    if (c->client_open) on_message(c, text);
  });
}

void Sim::send_end_down(const std::shared_ptr<Connection>& c, CloseReason reason) {
  c->last_down = std::max(c->last_down, now_ + some(milliseconds(120)));
  at(c->last_down, [this, c, reason] {
    if (!c->client_open) return;
    c->client_open = false;
    on_end(c, reason);
  });
}

// The client lets go, or the network breaks: the host hears of it a little later.
void Sim::hang_up(std::shared_ptr<Connection> c) {
  c->last_up = std::max(c->last_up, now_ + some(seconds(1)));
  at(c->last_up, [this, c] { end_up(c); });
  if (!c->client_open) return;
  c->client_open = false;
  on_end(c, CloseReason::reset);
}

// ---------------------------------------------------------------- endpoints

void Sim::retry(int index) {
  Endpoint& e = endpoints_[static_cast<std::size_t>(index)];
  if (e.retrying || leaving_) return;
  e.retrying = true;
  const Duration most =
      e.failures == 0 ? Duration(seconds(3)) : std::min<Duration>(seconds(30), seconds(1 << std::min(e.failures, 5)));
  ++e.failures;
  after(some(most), [this, index] { connect(index); });
}

void Sim::connect(int index) {
  Endpoint& e = endpoints_[static_cast<std::size_t>(index)];
  e.retrying = false;
  if (leaving_ || e.connection) return;
  const auto map = edge_map();
  if (map->version().value < e.newest_map) return retry(index);
  e.newest_map = map->version().value;
  const Pairing& p = pairings_[static_cast<std::size_t>(e.pairing)];
  const std::string& owner = map->host_of(p.room.bucket());
  const auto host = std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& h) { return h->name == owner; });
  if (host == hosts_.end()) return retry(index);
  e.connection = upgrade(**host, p.room, e.client, index);
  if (!e.connection) return retry(index);
  send_up(e.connection, protocol::hello_message(e.role, false));
}

void Sim::on_message(const std::shared_ptr<Connection>& c, const std::string& text) {
  if (c->endpoint < 0) return;
  Endpoint& e = endpoints_[static_cast<std::size_t>(c->endpoint)];
  Pairing& p = pairings_[static_cast<std::size_t>(e.pairing)];
  if (e.admitted) {
    // Endpoints say "<pairing> <role>"; anything else is of a stranger who took the other end's place in a pairing
    // room.
    const bool of_an_endpoint = text.ends_with(" mac") || text.ends_with(" phone");
    const std::string expected = std::to_string(e.pairing) + " " + std::string(to_string(other(e.role)));
    expect(!of_an_endpoint || text == expected, "frames: one of another room arrived: " + text);
    return;
  }
  const json message = json::parse(text);
  if (message.contains("nonce")) {
    protocol::Proof proof;
    const Bytes nonce = base64_decode(message["nonce"].get<std::string>()).value();
    if (p.registered) {
      const std::string origin = "https://" + hosts_[static_cast<std::size_t>(c->host)]->name;
      proof.signature = base64_encode(ed25519_sign(p.seed, protocol::join_transcript(e.role, nonce, p.room, origin)));
    }
    if (!e.ticket.empty()) proof.ticket = std::exchange(e.ticket, {});
    return send_up(c, protocol::proof_message(proof));
  }
  if (message.value("ok", false)) {
    e.admitted = true;
    e.failures = 0;
    if (message.contains("registrationToken") && !attested_) {
      register_key(c->endpoint, c->host, message["registrationToken"]);
    }
    return chatter(c->endpoint);
  }
  const std::string error = message.value("error", "");
  if (error == "signature required") p.registered = true;
  if (error == "ticket required" || error == "bad ticket") attest(c->endpoint, c->host);
}

void Sim::on_end(std::shared_ptr<Connection> c, CloseReason) {
  if (c->endpoint < 0) return;
  Endpoint& e = endpoints_[static_cast<std::size_t>(c->endpoint)];
  if (e.connection != c) return;
  e.connection = nullptr;
  e.admitted = false;
  retry(c->endpoint);
}

void Sim::attest(int index, int host) {
  const RoomName room = pairings_[static_cast<std::size_t>(endpoints_[static_cast<std::size_t>(index)].pairing)].room;
  post(*hosts_[static_cast<std::size_t>(host)], room, relay::Endpoint::attest_challenge, "{}",
       [=, this](std::uint16_t status, const std::string& body) {
         if (status != 200) return;
         const json request = {{"challenge", json::parse(body)["challenge"]},
                               {"attestationObject", base64_encode(bytes_of(std::to_string(index)))}};
         post(*hosts_[static_cast<std::size_t>(host)], room, relay::Endpoint::attest, request.dump(),
              [=, this](std::uint16_t s, const std::string& b) {
                if (s == 200) endpoints_[static_cast<std::size_t>(index)].ticket = json::parse(b)["ticket"];
              });
       });
}

void Sim::register_key(int index, int host, const std::string& token) {
  const Pairing& p = pairings_[static_cast<std::size_t>(endpoints_[static_cast<std::size_t>(index)].pairing)];
  const json request = {{"registrationToken", token}, {"verifier", base64_encode(ed25519_public_key(p.seed))}};
  const int pairing = endpoints_[static_cast<std::size_t>(index)].pairing;
  Host& h = *hosts_[static_cast<std::size_t>(host)];
  post(h, p.room, relay::Endpoint::register_, request.dump(),
       [=, this, &h, life = h.life](std::uint16_t status, const std::string&) {
         if (status != 200) return;
         ++report_.registrations;
         pairings_[static_cast<std::size_t>(pairing)].registered = true;
         // What was answered 200 is durable, unless the room has moved or the store was down meanwhile.
         const RoomName room = pairings_[static_cast<std::size_t>(pairing)].room;
         const bool ours =
             h.life == life && h.map && h.map->host_of(room.bucket()) == h.name && h.established.contains(room);
         if (ours) expect(h.store.rooms.contains(room), "durability: a 200 that the store does not hold");
       });
}

void Sim::chatter(int index) {
  Endpoint& e = endpoints_[static_cast<std::size_t>(index)];
  if (!e.admitted || !e.connection || leaving_) return;
  send_up(e.connection, std::to_string(e.pairing) + " " + std::string(to_string(e.role)));
  after(seconds(1) + some(seconds(20)), [this, index, c = e.connection] {
    if (endpoints_[static_cast<std::size_t>(index)].connection == c) chatter(index);
  });
}

// ---------------------------------------------------------------- strangers

void Sim::stranger() {
  constexpr std::array<const char*, 9> kSayings{R"({"v":1,"role":"mac"})",
                                                R"({"v":1,"role":"phone"})",
                                                R"({"v":1,"role":"phone","nonDisplacing":true})",
                                                "{}",
                                                R"({"sig":"AAAA"})",
                                                R"({"ticket":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"})",
                                                "[]",
                                                "stranger",
                                                "{\"v\":2}"};
  const Pairing& p = pairings_[random_.below(pairings_.size())];
  Host& h = *hosts_[random_.below(hosts_.size())];
  ClientKey client{{4, 66, 0, 0, static_cast<std::uint8_t>(random_.below(4))}};
  const auto c = upgrade(h, p.room, client, -1);
  if (!c) {
    post(h, p.room, static_cast<relay::Endpoint>(random_.below(4)), kSayings[random_.below(kSayings.size())],
         [](std::uint16_t, const std::string&) {});
    return;
  }
  if (chance(0.7)) {  // one who knows how to begin
    send_up(c, kSayings[random_.below(3)]);
    send_up(c, kSayings[3 + random_.below(3)]);
    for (int i = 0; i < 3; ++i) send_up(c, "stranger");
  } else {
    for (std::uint64_t i = random_.below(5); i > 0; --i) send_up(c, kSayings[random_.below(kSayings.size())]);
  }
  after(some(seconds(20)), [this, c] { hang_up(c); });
}

}  // namespace tandem::sim

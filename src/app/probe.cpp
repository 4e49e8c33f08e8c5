#include "tandem/app/probe.hpp"

#include "tandem/client/endpoint.hpp"
#include "tandem/client/post.hpp"
#include "tandem/core/authority.hpp"
#include "tandem/protocol/derivation.hpp"

#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>
#include <openssl/rand.h>

namespace tandem::app {
namespace {

using namespace client;
using Clock = std::chrono::steady_clock;

constexpr int kRoomsToTry = 64;  // on a host of a fleet, until one is its own

Bytes random_bytes(std::size_t size) {
  Bytes bytes(size);
  RAND_bytes(bytes.data(), static_cast<int>(size));
  return bytes;
}

// What the probe was doing when it had to stop.
struct Stop {
  std::string step, why, advice;
  bool timed_out = false, attestation = false;
};

struct Peer {
  std::shared_ptr<Endpoint> endpoint;
  std::optional<Ending> ended;
  bool admitted = false;
  std::string token;
  std::deque<Bytes> inbox;
};

class Probe {
 public:
  Probe(const ProbeTarget& target, const std::function<void(const ProbeStep&)>& report)
      : target_(target), report_(report), deadline_(Clock::now() + target.patience), mark_(Clock::now()) {
    new_room();
  }

  // Throws Stop.
  void run() {
    park_somewhere();
    phone_pairs();
    registers();
    rejoins();
    for (const std::size_t size : {std::size_t{1}, std::size_t{64 * 1024}, std::size_t{256 * 1024}}) {
      echo(mac_, phone_, size, "mac to phone and back");
      echo(phone_, mac_, size, "phone to mac and back");
    }
    deletes();
  }

  // A room that was established is not left behind; no word if that fails.
  void clean_up() {
    for (Peer* peer : {&mac_, &phone_})
      if (peer->endpoint) peer->endpoint->abort();
    if (!established_) return;
    deadline_ = std::min(deadline_, Clock::now() + std::chrono::seconds(2));
    try {
      delete_room();
    } catch (const Stop&) {
    }
  }

 private:
  void new_room() {
    room_ = protocol::room_name(random_bytes(32), "probe");
    seed_ = protocol::auth_seed(random_bytes(32));
  }

  void done(const std::string& name) {
    const auto now = Clock::now();
    report_({ProbeStep::Outcome::done, name, now - mark_, {}});
    mark_ = now;
  }

  template <class Condition>
  void wait(const std::string& step, Condition condition) {
    while (!condition()) {
      loop_.restart();
      if (loop_.run_one_until(deadline_) == 0 && Clock::now() >= deadline_)
        throw Stop{step, "no answer in time", "is something between here and the relay dropping packets?", true};
    }
  }

  [[noreturn]] void stop(const std::string& step, const Ending& ending) {
    throw Stop{step, describe(ending), advice_for(ending)};
  }

  std::string advice_for(const Ending& ending) const {
    if (const auto* none = std::get_if<NoConnection>(&ending)) {
      if (none->detail.starts_with("certificate")) return "set SSL_CERT_FILE to its CA, or renew it";
      if (none->detail.starts_with("DNS")) return "check the name";
      return "is the relay running, and is the port open?";
    }
    if (const auto* closed = std::get_if<Closed>(&ending); closed != nullptr && closed->reason == "bad signature")
      return "the relay's `hostname` is not '" + target_.host + "': probe the origin it is configured with";
    if (const auto* refused = std::get_if<Refused>(&ending)) {
      if (refused->status == 421) return "this host owns no bucket that was tried; see `tandemctl status`";
      if (refused->status == 429) return "wait a minute: this address has used up its rate";
      if (refused->status == 503) return "the relay is full or sheds load; see `tandemctl status`";
    }
    return "see the relay's log";
  }

  Destination destination() const { return {.host = target_.host, .connect = {}, .source = {}}; }

  // Opens one endpoint and waits until it is admitted or refused; reports its steps only where asked.
  void join(Peer& peer, Role role, bool detailed) {
    const std::string who(to_string(role));
    std::string at = who + ": TCP connection";
    peer = {};
    JoinSettings settings;
    settings.role = role;
    settings.room = room_;
    settings.key = seed_;
    using Step = Endpoint::Step;
    const auto step = [this, &at, who, detailed](Step reached) {
      if (detailed) done(at);
      at = who + (reached == Step::connected  ? ": TLS handshake"
                  : reached == Step::secured  ? ": upgrade"
                  : reached == Step::upgraded ? ": hello and nonce"
                                              : ": admission");
    };
    peer.endpoint = Endpoint::open(
        loop_, target_.trust, destination(), settings,
        {.admitted =
             [&peer](const std::string& token) {
               peer.admitted = true;
               peer.token = token;
             },
         .message = [&peer](Opcode, ByteView bytes) { peer.inbox.emplace_back(bytes.begin(), bytes.end()); },
         .ended = [&peer](const Ending& ending) { peer.ended = ending; },
         .step = step});
    try {
      wait(at, [&] { return peer.admitted || peer.ended; });
    } catch (Stop& late) {
      late.step = at;
      peer.endpoint->abort();
      throw;
    }
    step_ = at;
    if (peer.admitted && detailed) done(at);
  }

  void park_somewhere() {
    for (int tried = 1;; ++tried) {
      join(mac_, Role::mac, tried == 1);
      if (mac_.admitted) {
        if (tried > 1)
          done("mac: parked in the " + std::to_string(tried) + "th room tried, the first that is this host's");
        return;
      }
      const auto* refused = std::get_if<Refused>(&*mac_.ended);
      if (refused == nullptr || refused->status != 421 || tried == kRoomsToTry) stop(step_, *mac_.ended);
      new_room();
    }
  }

  void phone_pairs() {
    join(phone_, Role::phone, false);
    if (phone_.admitted) return done("phone: pairs");
    if (!is_ticket_required(*phone_.ended)) stop("phone: pairs", *phone_.ended);
    done("phone: refused without a ticket, as it must be");
    const PostAnswer answer = post_json("attestation challenge", "/attest/challenge", "{}");
    if (!answer.ok() || answer.field("challenge").empty())
      throw Stop{"attestation challenge", "HTTP " + std::to_string(answer.status), "see the relay's log"};
    done("attestation challenge");
    throw Stop{"phone: pairs", "the relay demands attestation", {}, false, true};
  }

  void registers() {
    bool over = false;
    std::optional<Ending> fault;
    const PostHandle call =
        register_verifier(loop_, target_.trust, destination(), room_, phone_.token, ed25519_public_key(seed_), nullptr,
                          [&](const std::optional<Ending>& result) {
                            fault = result;
                            over = true;
                          });
    wait("phone: registers the verifier", [&] { return over; });
    if (fault) stop("phone: registers the verifier", *fault);
    established_ = true;
    done("phone: registers the verifier");
  }

  void rejoins() {
    mac_.endpoint->close(1000, "");
    phone_.endpoint->close(1000, "");
    join(mac_, Role::mac, false);
    if (!mac_.admitted) stop("mac: rejoins by signature", *mac_.ended);
    done("mac: rejoins by signature");
    join(phone_, Role::phone, false);
    if (!phone_.admitted) stop("phone: rejoins by signature", *phone_.ended);
    done("phone: rejoins by signature");
  }

  void echo(Peer& from, Peer& to, std::size_t size, const std::string& way) {
    const std::string name =
        "echo " + (size < 1024 ? std::to_string(size) + " B" : std::to_string(size / 1024) + " KiB") + " " + way;
    const Bytes sent = random_bytes(size);
    const auto pass = [&](Peer& source, Peer& sink) {
      source.endpoint->send(Opcode::binary, sent);
      wait(name, [&] { return !sink.inbox.empty() || sink.ended || source.ended; });
      if (sink.inbox.empty()) stop(name, sink.ended ? *sink.ended : *source.ended);
      if (sink.inbox.front() != sent)
        throw Stop{name, "the frame arrived altered", "this is a fault of the relay: please report it"};
      sink.inbox.pop_front();
    };
    pass(from, to);
    pass(to, from);
    done(name);
  }

  PostAnswer post_json(const std::string& step, const std::string& path, const std::string& body) {
    std::optional<PostResult> result;
    const PostHandle call = post(loop_, target_.trust, destination(), {path, room_, body},
                                 [&](const PostResult& answer) { result = answer; });
    wait(step, [&] { return result.has_value(); });
    if (const auto* none = std::get_if<NoConnection>(&*result)) stop(step, *none);
    return std::get<PostAnswer>(*result);
  }

  void delete_room() {
    const std::string step = "room: deleted";
    const PostAnswer challenged = post_json(step, "/attest/challenge", "{}");
    const auto challenge = base64_decode(challenged.field("challenge"));
    if (!challenged.ok() || !challenge)
      throw Stop{step, "no challenge: HTTP " + std::to_string(challenged.status), "see the relay's log"};
    const Bytes transcript = protocol::delete_transcript(*challenge, room_, "https://" + target_.host);
    const nlohmann::json body = {{"challenge", challenged.field("challenge")},
                                 {"signature", base64_encode(ed25519_sign(seed_, transcript))}};
    const PostAnswer answer = post_json(step, "/delete", body.dump());
    if (!answer.ok())
      throw Stop{step, "HTTP " + std::to_string(answer.status) + " " + answer.error(), "see the relay's log"};
    established_ = false;
  }

  void deletes() {
    delete_room();
    wait("room: deleted", [&] { return mac_.ended && phone_.ended; });
    for (const Peer* peer : {&mac_, &phone_}) {
      const auto* closed = std::get_if<Closed>(&*peer->ended);
      if (closed == nullptr || closed->code != 1000 || closed->reason != "room deleted")
        throw Stop{"room: deleted", "a socket " + describe(*peer->ended),
                   "this is a fault of the relay: please report it"};
    }
    done("room: deleted, both sockets closed");
  }

  const ProbeTarget& target_;
  const std::function<void(const ProbeStep&)>& report_;
  boost::asio::io_context loop_;
  Clock::time_point deadline_, mark_;
  RoomName room_;
  Ed25519Seed seed_{};
  Peer mac_, phone_;
  std::string step_;
  bool established_ = false;
};

}  // namespace

ProbeResult probe(const ProbeTarget& target, const std::function<void(const ProbeStep&)>& report) {
  const auto began = Clock::now();
  // On the heap and, after a time-out, never destroyed: a name look-up that hangs would make its destruction hang as
  // well.
  auto run = std::make_unique<Probe>(target, report);
  ProbeResult result;
  try {
    run->run();
    result.ok = true;
  } catch (const Stop& stop) {
    result.ok = result.attestation_demanded = stop.attestation;
    result.timed_out = stop.timed_out;
    if (stop.attestation) {
      for (const char* name :
           {"phone: pairs", "phone: registers the verifier", "rejoin by signature", "echo", "room: deleted"})
        report({ProbeStep::Outcome::skipped, name, {}, "needs a phone that can attest"});
    } else {
      report({ProbeStep::Outcome::failed, stop.step, {}, stop.why});
      result.fault = stop.step + ": " + stop.why;
      result.advice = stop.advice;
    }
  }
  if (result.timed_out)
    (void)run.release();
  else
    run->clean_up();
  result.took = Clock::now() - began;
  return result;
}

std::string host_of_origin(const std::string& url) {
  std::string host;
  for (const std::string_view scheme : {"https://", "wss://"})
    if (url.starts_with(scheme)) host = url.substr(scheme.size());
  if (host.ends_with('/')) host.pop_back();
  if (host.ends_with(":443")) host.resize(host.size() - 4);
  return Authority::parse(host) ? host : std::string{};
}

}  // namespace tandem::app

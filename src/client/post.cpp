#include "tandem/client/post.hpp"

#include "tandem/client/http_answer.hpp"
#include "tandem/core/json.hpp"
#include "tandem/protocol/derivation.hpp"

#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

namespace tandem::client {
namespace {

namespace asio = boost::asio;

class Call final : public std::enable_shared_from_this<Call> {
 public:
  Call(asio::io_context& loop, std::function<void(const PostResult&)> done)
      : loop_(loop), timer_(loop), done_(std::move(done)) {}

  void start(TlsTrust trust, const Destination& destination, const PostRequest& request) {
    head_and_body_ = "POST " + request.path + " HTTP/1.1\r\nHost: " + destination.host +
                     "\r\nx-relay-room: " + request.room.hex() +
                     "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) +
                     "\r\nConnection: close\r\n\r\n" + request.body;
    const auto me = shared_from_this();
    timer_.expires_after(request.patience);
    timer_.async_wait([me](const boost::system::error_code& error) {
      if (!error) me->finish(NoConnection{"timed out"});
    });
    socket_ = TlsSocket::open(loop_, std::move(trust), destination,
                              {.opened = [me] { me->socket_->send(bytes_of(me->head_and_body_)); },
                               .received = [me](ByteView bytes) { me->received(bytes); },
                               .ended = [me](const std::string& why) { me->ended(why); }});
  }

  void cancel() {
    timer_.cancel();
    if (socket_) socket_->close();
    asio::post(loop_, [dead = std::exchange(done_, nullptr)] {});
  }

 private:
  void received(ByteView bytes) {
    const HttpAnswer::State state = answer_.feed(bytes);
    if (state == HttpAnswer::State::malformed) return finish(NoConnection{"no HTTP answer"});
    if (state == HttpAnswer::State::complete) finish(PostAnswer{answer_.status(), answer_.body()});
  }

  void ended(const std::string& why) {
    if (answer_.end() == HttpAnswer::State::complete) return finish(PostAnswer{answer_.status(), answer_.body()});
    finish(NoConnection{why.empty() ? "closed before an answer" : why});
  }

  void finish(const PostResult& result) {
    const auto done = std::exchange(done_, nullptr);
    const auto me = shared_from_this();
    cancel();
    if (done) done(result);
  }

  asio::io_context& loop_;
  asio::steady_timer timer_;
  std::function<void(const PostResult&)> done_;
  std::shared_ptr<TlsSocket> socket_;
  HttpAnswer answer_;
  std::string head_and_body_;
};

// Dropping it cancels the call; the call keeps itself alive until its socket is gone.
class Handle final : public PostCall {
 public:
  explicit Handle(std::shared_ptr<Call> call) : call_(std::move(call)) {}
  ~Handle() override { call_->cancel(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  std::shared_ptr<Call> call_;
};

// Several POSTs, one after another, as one call.
struct Sequence final : PostCall {
  PostHandle current;
};

Ending ending_of(const PostResult& result) {
  if (const auto* none = std::get_if<NoConnection>(&result)) return *none;
  const auto& answer = std::get<PostAnswer>(result);
  const std::string error = answer.error();
  return Refused{answer.status, error.empty() ? answer.body : error};
}

const PostAnswer* success(const PostResult& result) {
  const auto* answer = std::get_if<PostAnswer>(&result);
  return answer != nullptr && answer->ok() ? answer : nullptr;
}

struct Place {
  asio::io_context& loop;
  TlsTrust trust;
  Destination destination;
  RoomName room;
};

using WithChallenge = std::function<void(const std::string& challenge, const Sha256& hash)>;

void with_challenge(Sequence& sequence, const Place& place, WithChallenge then,
                    std::function<void(const Ending&)> failed) {
  const std::string origin = "https://" + place.destination.host;
  sequence.current = post(place.loop, place.trust, place.destination, {"/attest/challenge", place.room, "{}"},
                          [origin, then = std::move(then), failed = std::move(failed)](const PostResult& result) {
                            const PostAnswer* answer = success(result);
                            if (answer == nullptr) return failed(ending_of(result));
                            const std::string challenge = answer->field("challenge");
                            const auto bytes = base64_decode(challenge);
                            if (!bytes) return failed(NoConnection{"the answer holds no challenge"});
                            then(challenge, protocol::client_data_hash(*bytes, origin));
                          });
}

}  // namespace

std::string PostAnswer::field(const char* name) const {
  const auto json = parse_json(body);
  if (!json || !json->is_object()) return {};
  const auto found = json->find(name);
  return found != json->end() && found->is_string() ? found->get<std::string>() : std::string{};
}

PostHandle post(asio::io_context& loop, TlsTrust trust, const Destination& destination, const PostRequest& request,
                std::function<void(const PostResult&)> done) {
  auto call = std::make_shared<Call>(loop, std::move(done));
  call->start(std::move(trust), destination, request);
  return std::make_shared<Handle>(std::move(call));
}

PostHandle attest(asio::io_context& loop, const TlsTrust& trust, const Destination& destination, const RoomName& room,
                  Attestor& attestor, const std::function<void(const std::variant<std::string, Ending>&)>& done) {
  const auto sequence = std::make_shared<Sequence>();
  const std::weak_ptr<Sequence> weak = sequence;
  const Place place{loop, trust, destination, room};
  const auto attested = [done](const PostResult& result) {
    const PostAnswer* answer = success(result);
    answer != nullptr ? done(answer->field("ticket")) : done(ending_of(result));
  };
  const auto challenged = [weak, place, attested, &attestor](const std::string& challenge, const Sha256& hash) {
    const auto alive = weak.lock();
    if (!alive) return;
    const Json body = {{"challenge", challenge}, {"attestationObject", base64_encode(attestor.attestation(hash))}};
    alive->current = post(place.loop, place.trust, place.destination, {"/attest", place.room, body.dump()}, attested);
  };
  with_challenge(*sequence, place, challenged, [done](const Ending& ending) { done(ending); });
  return sequence;
}

PostHandle register_verifier(asio::io_context& loop, const TlsTrust& trust, const Destination& destination,
                             const RoomName& room, const std::string& registration_token,
                             const Ed25519PublicKey& verifier, Attestor* attestor,
                             const std::function<void(const std::optional<Ending>&)>& done) {
  const auto sequence = std::make_shared<Sequence>();
  const std::weak_ptr<Sequence> weak = sequence;
  const Place place{loop, trust, destination, room};
  const Json fields = {{"registrationToken", registration_token}, {"verifier", base64_encode(verifier)}};
  const auto registered = [done](const PostResult& result) {
    const auto* answer = std::get_if<PostAnswer>(&result);
    const bool there = answer != nullptr && (answer->ok() || answer->error() == "already registered");
    there ? done(std::nullopt) : done(ending_of(result));
  };
  const auto send = [weak, place, registered](const Json& body) {
    if (const auto alive = weak.lock())
      alive->current =
          post(place.loop, place.trust, place.destination, {"/register", place.room, body.dump()}, registered);
  };
  if (attestor == nullptr) {
    send(fields);
    return sequence;
  }
  const auto challenged = [fields, send, attestor](const std::string& challenge, const Sha256& hash) {
    Json body = fields;
    body["challenge"] = challenge;
    body["assertion"] = base64_encode(attestor->assertion(hash));
    send(body);
  };
  with_challenge(*sequence, place, challenged, [done](const Ending& ending) { done(ending); });
  return sequence;
}

}  // namespace tandem::client

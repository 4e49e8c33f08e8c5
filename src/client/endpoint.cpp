#include "tandem/client/endpoint.hpp"

#include "tandem/client/http_answer.hpp"
#include "tandem/core/json.hpp"
#include "tandem/protocol/admission.hpp"
#include "tandem/protocol/derivation.hpp"

#include <array>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>
#include <openssl/rand.h>
#include <openssl/sha.h>

namespace tandem::client {
namespace {

namespace asio = boost::asio;

constexpr Duration kCloseFrameGrace = seconds(2);  // for the close frame behind a refusal, or an answer's body

template <std::size_t N>
std::array<std::uint8_t, N> random_bytes() {
  std::array<std::uint8_t, N> bytes{};
  RAND_bytes(bytes.data(), static_cast<int>(N));
  return bytes;
}

std::string accept_for(const std::string& key) {
  const std::string text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // RFC 6455, section 1.3
  std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest{};
  SHA1(bytes_of(text).data(), text.size(), digest.data());
  return base64_encode(digest);
}

std::string string_field(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

class Joining final : public Endpoint {
 public:
  Joining(asio::io_context& loop, const Destination& destination, JoinSettings join, Handlers handlers)
      : loop_(loop), timer_(loop), host_(destination.host), join_(std::move(join)), handlers_(std::move(handlers)) {}

  void start(asio::io_context& loop, TlsTrust trust, const Destination& destination) {
    arm(join_.patience);
    const auto me = self();
    socket_ = TlsSocket::open(loop, std::move(trust), destination,
                              {.opened = [me] { me->upgrade(); },
                               .received = [me](ByteView bytes) { me->received(bytes); },
                               .ended = [me](const std::string& why) { me->socket_ended(why); },
                               .connected = [me] { me->tell(Step::connected); }});
  }

  void send(Opcode opcode, ByteView payload) override {
    if (phase_ == Phase::over) return;
    frame_.clear();
    append_frame(frame_, opcode, payload, random_bytes<4>());
    socket_->send(frame_);
  }
  void ping(ByteView payload, std::function<void()> answered) override {
    pong_ = std::move(answered);
    send(Opcode::ping, payload);
  }
  void close(std::uint16_t code, std::string_view reason) override {
    if (phase_ == Phase::over) return;
    Bytes frame;
    append_close(frame, code, reason, random_bytes<4>());
    socket_->send(frame);
    socket_->close_after_sending();
    over();
  }
  void abort() override {
    if (phase_ == Phase::over) return;
    socket_->close();
    over();
  }
  void pause_reading(bool paused) override {
    if (phase_ != Phase::over) socket_->pause_reading(paused);
  }
  void on_drained(std::function<void()> handler) override {
    if (phase_ != Phase::over) socket_->on_drained(std::move(handler));
  }
  std::size_t unsent() const noexcept override { return socket_->unsent(); }
  bool is_admitted() const noexcept override { return phase_ == Phase::admitted; }

 private:
  enum class Phase : std::uint8_t { connecting, upgrading, challenged, proving, admitted, refused, over };

  std::shared_ptr<Joining> self() { return std::static_pointer_cast<Joining>(shared_from_this()); }

  void arm(Duration patience) {
    timer_.expires_after(patience);
    timer_.async_wait([me = self()](const boost::system::error_code& error) {
      if (!error && me->phase_ != Phase::over && me->phase_ != Phase::admitted) me->too_late();
    });
  }

  void too_late() {
    if (phase_ == Phase::refused) return end(Closed{1008, refusal_});
    if (phase_ == Phase::upgrading && answer_.status() != 0) return end(Refused{answer_.status(), answer_.body()});
    if (phase_ == Phase::connecting || phase_ == Phase::upgrading) return end(NoConnection{"timed out"});
    end(Closed{1006, {}});
  }

  void tell(Step step) {
    if (handlers_.step) handlers_.step(step);
  }

  // One of the handlers may be what is running, and may hold the last reference to this: they die behind it.
  void over() {
    phase_ = Phase::over;
    timer_.cancel();
    asio::post(loop_, [dead = std::exchange(handlers_, {}), pong = std::exchange(pong_, nullptr)] {});
  }

  void end(const Ending& ending) {
    const auto ended = std::move(handlers_.ended);
    socket_->close();
    over();
    if (ended) ended(ending);
  }

  void upgrade() {
    tell(Step::secured);
    if (phase_ == Phase::over) return;
    phase_ = Phase::upgrading;
    websocket_key_ = base64_encode(random_bytes<16>());
    const std::string head = "GET / HTTP/1.1\r\nHost: " + host_ +
                             "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: " +
                             websocket_key_ + "\r\nx-relay-room: " + join_.room.hex() + "\r\n\r\n";
    socket_->send(bytes_of(head));
  }

  void socket_ended(const std::string& why) {
    if (phase_ == Phase::connecting) return end(NoConnection{why});
    if (phase_ == Phase::upgrading) {
      answer_.end();
      if (answer_.status() != 0) return end(Refused{answer_.status(), answer_.body()});
      return end(NoConnection{why.empty() ? "closed before an answer" : why});
    }
    end(Closed{static_cast<std::uint16_t>(phase_ == Phase::refused ? 1008 : 1006), refusal_});
  }

  void received(ByteView bytes) {
    const auto me = self();  // a handler may let go of the last reference
    if (phase_ == Phase::upgrading) return answered(bytes);
    frames_.feed(bytes);
    read_frames();
  }

  void answered(ByteView bytes) {
    const HttpAnswer::State state = answer_.feed(bytes);
    if (state == HttpAnswer::State::malformed) return end(NoConnection{"no HTTP answer"});
    if (state == HttpAnswer::State::incomplete) {
      if (answer_.status() != 0) arm(kCloseFrameGrace);
      return;
    }
    if (answer_.status() != 101) return end(Refused{answer_.status(), answer_.body()});
    if (answer_.header("sec-websocket-accept") != accept_for(websocket_key_))
      return end(NoConnection{"the upgrade's answer is not a WebSocket's"});
    phase_ = Phase::challenged;
    tell(Step::upgraded);
    if (phase_ == Phase::over) return;
    send(Opcode::text, bytes_of(protocol::hello_message(join_.role, join_.non_displacing)));
    frames_.feed(answer_.rest());
    read_frames();
  }

  void read_frames() {
    while (phase_ != Phase::over) {
      const auto next = frames_.next();
      if (!next) return end(Closed{1006, "broken frame"});
      if (!*next) return;
      handle(**next);
    }
  }

  void handle(const Message& message) {
    switch (message.opcode) {
      case Opcode::ping: return send(Opcode::pong, message.payload);
      case Opcode::pong:
        if (const auto answered_ping = std::exchange(pong_, nullptr)) answered_ping();
        return;
      case Opcode::close: {
        const CloseFrame close = parse_close(message.payload);
        Bytes echo;
        append_frame(echo, Opcode::close,
                     ByteView(message.payload).first(std::min<std::size_t>(2, message.payload.size())),
                     random_bytes<4>());
        socket_->send(echo);
        socket_->close_after_sending();
        return end_keeping_socket(Closed{close.code, close.reason});
      }
      case Opcode::text:
      case Opcode::binary: break;
      case Opcode::continuation: return;
    }
    if (phase_ == Phase::admitted) {
      if (handlers_.message) handlers_.message(message.opcode, message.payload);
      return;
    }
    if (phase_ == Phase::refused) return;
    const std::string_view text(reinterpret_cast<const char*>(message.payload.data()), message.payload.size());
    const auto json = parse_json(text, {.max_bytes = protocol::kAdmissionMessageBytes, .max_depth = 8});
    if (!json || !json->is_object()) return end(Closed{1006, "not an admission message"});
    phase_ == Phase::challenged ? prove(*json) : judge(*json);
  }

  void end_keeping_socket(const Ending& ending) {
    const auto ended = std::move(handlers_.ended);
    over();
    if (ended) ended(ending);
  }

  void prove(const Json& message) {
    const auto nonce = base64_decode(string_field(message, "nonce"));
    if (!nonce || nonce->size() != 32) return end(Closed{1006, "no nonce"});
    phase_ = Phase::proving;
    tell(Step::challenged);
    if (phase_ == Phase::over) return;
    protocol::Proof proof;
    if (!join_.ticket.empty()) {
      proof.ticket = join_.ticket;
    } else if (join_.key) {
      const Bytes transcript = protocol::join_transcript(join_.role, *nonce, join_.room, "https://" + host_);
      proof.signature = base64_encode(ed25519_sign(*join_.key, transcript));
    }
    send(Opcode::text, bytes_of(protocol::proof_message(proof)));
  }

  void judge(const Json& message) {
    const auto ok = message.find("ok");
    if (ok != message.end() && ok->is_boolean() && ok->get<bool>()) {
      phase_ = Phase::admitted;
      timer_.cancel();
      if (handlers_.admitted) handlers_.admitted(string_field(message, "registrationToken"));
      return;
    }
    refusal_ = string_field(message, "error");  // the close frame that follows says the same
    phase_ = Phase::refused;
    arm(kCloseFrameGrace);
  }

  asio::io_context& loop_;
  asio::steady_timer timer_;
  std::string host_;
  JoinSettings join_;
  Handlers handlers_;
  std::shared_ptr<TlsSocket> socket_;
  HttpAnswer answer_;
  FrameReader frames_;
  Bytes frame_;
  std::string websocket_key_, refusal_;
  std::function<void()> pong_;
  Phase phase_ = Phase::connecting;
};

}  // namespace

std::shared_ptr<Endpoint> Endpoint::open(asio::io_context& loop, TlsTrust trust, const Destination& destination,
                                         const JoinSettings& join, Handlers handlers) {
  auto endpoint = std::make_shared<Joining>(loop, destination, join, std::move(handlers));
  endpoint->start(loop, std::move(trust), destination);
  return endpoint;
}

}  // namespace tandem::client

#include "net/connection.hpp"

#include "net/http_session.hpp"
#include "net/loop.hpp"

#include <algorithm>
#include <cassert>

namespace tandem::net {
Connection::Connection(Loop& loop, Socket socket, const Address& remote)
    : loop_(loop),
      transport_(std::move(socket), loop.buffers),
      remote_(remote),
      client_(remote.key()),
      opened_(loop.mono()) {}

Connection::~Connection() = default;

void Connection::start() {
  deadline_ = loop_.mono() + loop_.settings.request;
  if (loop_.settings.proxy.trust == ProxySettings::Trust::proxy_protocol) {
    phase_ = Phase::proxy;
    stash_ = std::make_unique<std::string>();
  } else {
    begin_handshake();
  }
  reschedule();
  arm();
}

// ---------------------------------------------------------------- Asio

void Connection::arm() {
  if (phase_ == Phase::dead) return;
  if (!reading_ && !queued_ && wants_read()) {
    reading_ = true;
    transport_.socket().async_wait(Socket::wait_read,
                                   [self = boost::intrusive_ptr<Connection>(this)](boost::system::error_code) {
                                     self->reading_ = false;
                                     self->on_readable();
                                   });
  }
  if (!writing_ && transport_.pending() != 0) {
    writing_ = true;
    transport_.socket().async_wait(Socket::wait_write,
                                   [self = boost::intrusive_ptr<Connection>(this)](boost::system::error_code) {
                                     self->writing_ = false;
                                     self->on_writable();
                                   });
  }
}

void Connection::on_readable() {
  if (phase_ == Phase::dead) return;
  const Loop::Turn turn(loop_);
  if (!wants_read()) return;  // what it waits for arms it again
  if (phase_ < Phase::admitted) {
    queued_ = true;
    loop_.enter(*this);
    return;
  }
  if (phase_ == Phase::admitted) {
    read_splice();
  } else {
    discard();
  }
  loop_.touch(*this);
}

// Goes on while the source has more and the peer's socket takes everything at once, up to a fair share: another round
// through the reactor costs more than another read.
void Connection::read_splice() {
  if (speed_.fast()) judge_speed();  // it may have been fast a while ago
  for (std::size_t share = kShare; share != 0;) {
    const std::size_t most = std::min(share, read_budget());
    if (most == 0) return;
    const std::size_t taken = receive(most);
    if (peer_ != nullptr && speed_.took(taken, loop_.settings.fast_socket_buffer_bytes)) judge_speed();
    if (taken < most || phase_ != Phase::admitted || peer_ == nullptr) return;
    peer_->transport_.flush();
    if (!wants_read()) return;
    share -= taken;
  }
}

// A source that comes fast gets more of the kernel's memory, and less again when it has become slow.
void Connection::judge_speed() {
  const Settings& settings = loop_.settings;
  const std::uint32_t most = settings.fast_socket_buffer_bytes;
  if (phase_ != Phase::admitted || most <= settings.socket_buffer_bytes || !speed_.judge(loop_.mono(), most)) return;
  transport_.bound_receiving(speed_.fast() ? most : settings.socket_buffer_bytes);
}

// How fast it was says nothing about another peer, or under other settings.
void Connection::forget_speed() {
  if (speed_.fast()) transport_.bound_receiving(loop_.settings.socket_buffer_bytes);
  speed_ = {};
}

void Connection::serve_entry() {
  queued_ = false;
  if (phase_ == Phase::dead) return;
  if (wants_read()) {
    if (phase_ == Phase::proxy)
      read_proxy_header();
    else if (phase_ >= Phase::closing)
      discard();
    else
      receive(kEntryRead);
  }
  loop_.touch(*this);
}

void Connection::on_writable() {
  if (phase_ == Phase::dead) return;
  const Loop::Turn turn(loop_);
  transport_.resume();
  loop_.touch(*this);
}

void Connection::go_on(std::uint64_t bytes) {
  box_waiting_ = false;
  if (phase_ == Phase::admitted && wants_read()) receive(static_cast<std::size_t>(bytes));
  loop_.touch(*this);
}

bool Connection::wants_read() {
  if (input_over_) return false;
  switch (phase_) {
    case Phase::proxy:
    case Phase::handshake: return true;
    case Phase::http:
      return transport_.pending() == 0 &&
             (http_->state != HttpSession::State::waiting || http_->buffer.size() < HttpSession::kReadAhead);
    case Phase::pending: {
      const bool blocked = held_back() || transport_.pending() >= kUnreadAnswers;
      unread_ = unread_ || blocked;
      return !blocked;
    }
    case Phase::admitted: {
      const bool blocked = stash_ != nullptr || box_waiting_ || pace_due_ != kNever ||
                           transport_.pending() >= kUnreadAnswers || (peer_ != nullptr && peer_->full());
      unread_ = unread_ || blocked;
      return !blocked;
    }
    case Phase::closing: return transport_.pending() < kUnreadAnswers;
    case Phase::lingering: return true;
    case Phase::dead: return false;
  }
  return false;
}

// ---------------------------------------------------------------- bytes in

// -> how many bytes came.
std::size_t Connection::receive(std::size_t most) {
  switch (transport_.fill(most)) {
    case Transport::Status::ok: break;
    case Transport::Status::dry: return 0;
    case Transport::Status::end: input_ended(true); return 0;
    case Transport::Status::failed: input_ended(false); return 0;
  }
  const std::size_t taken = transport_.received().size();
  heard_ = true;
  if (phase_ == Phase::handshake)
    go_on_handshake();
  else
    take_in();
  return taken;
}

void Connection::take_in() {
  std::span<const std::uint8_t> piece;
  Transport::Status status = Transport::Status::ok;
  while (phase_ < Phase::lingering && (status = transport_.read(piece)) == Transport::Status::ok) consume(piece);
  finish_batch();
  if (phase_ >= Phase::lingering) return;
  if (status == Transport::Status::end)
    input_ended(true);
  else if (status == Transport::Status::failed)
    input_ended(false);
}

void Connection::consume(std::span<const std::uint8_t> bytes) {
  if (phase_ == Phase::http) {
    http_->buffer.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    advance_http();
  } else if (phase_ == Phase::pending || phase_ == Phase::admitted || phase_ == Phase::closing) {
    if (stash_ != nullptr)
      stash_->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    else
      consume_frames(bytes);
  }
}

// FIN, close_notify, a reset or broken TLS: each ends the whole socket.
void Connection::input_ended(bool orderly) {
  input_over_ = true;
  if (phase_ == Phase::pending || phase_ == Phase::admitted) {
    finish_batch();
    note_end(Initiator::network, 1006, orderly ? CloseReason::end_of_stream : CloseReason::reset);
    leave_splice();
    const SocketId id = id_;
    destroy();
    loop_.dispatch(relay::event::SocketEnded{id});
    return;
  }
  if (phase_ == Phase::handshake && !ended_ && transport_.is_tls())
    loop_.observe(observed::TlsHandshake{false, false, loop_.mono() - opened_});
  destroy();
}

// ---------------------------------------------------------------- the end of a turn

void Connection::settle() {
  if (phase_ == Phase::dead) return;
  transport_.flush();
  if (transport_.broken()) {
    if (phase_ == Phase::pending || phase_ == Phase::admitted)
      input_ended(false);
    else
      destroy();
    return;
  }
  if (phase_ == Phase::pending || phase_ == Phase::admitted) {
    if (stash_ != nullptr && (phase_ == Phase::admitted)) {
      const std::unique_ptr<std::string> held = std::move(stash_);
      consume_frames({reinterpret_cast<const std::uint8_t*>(held->data()), held->size()});
      finish_batch();
      if (phase_ == Phase::dead) return;
    }
    if (held_back()) watch_held();
    if (pongs_ != nullptr && !full()) {
      flush_pongs();
      transport_.flush();
    }
  } else if (phase_ == Phase::http) {
    advance_http();
    if (phase_ == Phase::dead) return;
    transport_.flush();
  }
  if (phase_ == Phase::closing && answered_ && transport_.pending() == 0) finish();
  watch_output();
  reschedule();
  arm();
}

void Connection::reschedule() {
  if (phase_ != Phase::dead) loop_.wheel.set(*this, std::min({deadline_, ping_due_, stall_due_, pace_due_}));
}

void Connection::on_timer() {
  const TimePoint now = loop_.mono();
  if (now >= pace_due_) {
    pace_due_ = kNever;
    loop_.touch(*this);
  }
  if (now >= deadline_) {
    deadline_ = kNever;
    if (phase_ == Phase::http &&
        (http_->state != HttpSession::State::head || !http_->served || !http_->buffer.empty())) {
      refuse(RejectReason::timeout, 408, "timeout", {}, false);
    } else {
      if (phase_ == Phase::handshake) loop_.observe(observed::TlsHandshake{false, false, now - opened_});
      if (stalled_out_ || before_websocket() || phase_ >= Phase::closing) return destroy();
    }
  }
  if (now >= ping_due_) check_keepalive();
  if (phase_ != Phase::dead && now >= stall_due_) check_stall();
  reschedule();
}

void Connection::settings_changed() {
  if (ping_due_ != kNever) ping_due_ = std::min(ping_due_, loop_.mono() + loop_.settings.keepalive);
  if (!loop_.settings.room_bytes_per_second) {
    pace_.reset();
    pace_due_ = kNever;
  }
  forget_speed();
  reschedule();
  loop_.touch(*this);
}

void Connection::stop_serving() {
  if (phase_ == Phase::http && http_->state != HttpSession::State::head) {
    http_->keep_alive = false;  // its answer is on the way
  } else if (before_websocket()) {
    destroy();
  }
}

bool Connection::quiet() const {
  return phase_ != Phase::admitted || peer_ == nullptr || (transport_.pending() == 0 && transport_.unread() == 0);
}

void Connection::destroy() {
  if (phase_ == Phase::dead) return;
  leave_splice();
  const std::unique_ptr<HttpSession> http = std::move(http_);
  phase_ = Phase::dead;
  loop_.wheel.cancel(*this);
  transport_.close();
  loop_.forget(*this);
  if (http != nullptr && http->state == HttpSession::State::waiting) {
    loop_.release_request(http->request);
    loop_.dispatch(relay::event::RequestGone{http->request});
  }
}

}  // namespace tandem::net

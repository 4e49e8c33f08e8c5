#include "net/loop.hpp"

#include "tandem/net/clock.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include <boost/asio/post.hpp>

namespace tandem::net {
namespace {

constexpr unsigned kSlotBits = 22;                 // of a socket id: where it is; the rest: which one it is
constexpr Duration kEntryShare = milliseconds(1);  // of a turn of the loop, for handshakes and admissions
constexpr Duration kHeartbeat = seconds(1);

}  // namespace

Loop::Loop(boost::asio::io_context& io_, relay::Relay& relay_, Observer& observer_, Settings settings_)
    : io(io_),
      relay(relay_),
      observer(observer_),
      settings(std::move(settings_)),
      wheel(monotonic_now()),
      now_(read_clock()),
      timer_(io_),
      heartbeat_due_(now_.mono + kHeartbeat),
      last_heartbeat_(now_.mono) {
  box.set_rate(settings.box_bytes_per_second, now_.mono);
}

Loop::~Loop() { shut(); }

void Loop::start() {
  const Turn turn(*this);
  relay_due_ = relay.next_deadline();
}

void Loop::shut() {
  if (std::exchange(shut_, true)) return;
  for (auto& listener : listeners) listener->stop();
  const auto all = std::move(connections_);
  connections_.clear();
  for (const ConnectionPtr& connection : all) connection->destroy();
  entries_.clear();
  touched_.clear();
  graveyard_.clear();
  box.clear();
  wheel.cancel(box_timer_);
  wheel.cancel(stop_timer_);
  wheel.cancel(last_words_timer_);
  timer_.cancel();
}

// ---------------------------------------------------------------- turns

Loop::Turn::Turn(Loop& loop) : loop_(loop) {
  if (loop_.depth_++ == 0) loop_.now_ = read_clock();
}

Loop::Turn::~Turn() {
  if (loop_.depth_ == 1) loop_.end_turn();
  --loop_.depth_;
}

void Loop::end_turn() {
  while (!touched_.empty()) {
    touched_now_.swap(touched_);
    for (const ConnectionPtr& connection : touched_now_) {
      connection->touched = false;
      connection->settle();
    }
    touched_now_.clear();
  }
  if (buffers.sent_bytes != 0) relay.count_egress(std::exchange(buffers.sent_bytes, 0));
  if (!graveyard_.empty()) {
    graveyard_.clear();  // their descriptors come free: who waited for one goes on
    for (auto& listener : listeners) listener->try_again();
  }
  if (stopping_) check_stopped();
  arm_timer();
}

void Loop::touch(Connection& connection) {
  if (std::exchange(connection.touched, true)) return;
  touched_.emplace_back(&connection);
}

void Loop::arm_timer() {
  const TimePoint due = std::min({wheel.next(), relay_due_, heartbeat_due_});
  // An earlier wake-up that is under way already does no harm: it finds nothing and sets the next. Re-arming costs
  // system calls.
  if (shut_ || due >= timer_due_) return;
  timer_due_ = due;
  timer_.expires_at(std::chrono::steady_clock::time_point{
      std::chrono::duration_cast<std::chrono::steady_clock::duration>(due.time_since_epoch())});
  timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || self == nullptr || self->shut_) return;
    self->on_timer();
  });
}

void Loop::on_timer() {
  const Turn turn(*this);
  timer_due_ = kNever;
  wheel.expire(mono(), [this](TimerNode& node) {
    if (&node == &box_timer_) {
      std::uint64_t bytes = 0;
      while (const ConnectionPtr source = box.grant(mono(), bytes)) source->go_on(bytes);
      reschedule_box();
    } else if (&node == &last_words_timer_) {
      hear_last_words();
    } else if (&node == &stop_timer_) {
      const auto all = connections_;
      for (const ConnectionPtr& connection : all) connection->destroy();
    } else {
      const ConnectionPtr connection(static_cast<Connection*>(&node));
      connection->on_timer();
    }
  });
  if (mono() >= relay_due_) {
    handling_ = true;
    perform(relay.advance(now_));
    handling_ = false;
    run_events();
    relay_due_ = relay.next_deadline();
  }
  if (mono() >= heartbeat_due_) heartbeat();
}

// Once a second: how late the loop is, how fast it relays, and whether accepting may go on.
void Loop::heartbeat() {
  observe(observed::LoopLag{mono() - heartbeat_due_});
  const std::uint64_t relayed = counters.from_mac.bytes + counters.from_phone.bytes;
  const double elapsed = to_seconds(mono() - last_heartbeat_);
  if (elapsed > 0) counters.bytes_per_second = static_cast<double>(relayed - relayed_at_heartbeat_) / elapsed;
  relayed_at_heartbeat_ = relayed;
  last_heartbeat_ = mono();
  heartbeat_due_ = mono() + kHeartbeat;
  heap_.look(mono());
  for (auto& listener : listeners) {
    listener->tell();
    listener->try_again();
  }
}

// ---------------------------------------------------------------- events and effects

void Loop::dispatch(const relay::Event& event) {
  if (shut_) return;
  if (handling_) {
    // Only what net and app say in answer to an effect gets here, and none of that holds views.
    assert(!std::holds_alternative<relay::event::MessageReceived>(event) &&
           !std::holds_alternative<relay::event::RequestReceived>(event));
    events_.push_back(event);
    return;
  }
  const Turn turn(*this);
  handling_ = true;
  perform(relay.handle(event, now_));
  handling_ = false;
  run_events();
  relay_due_ = relay.next_deadline();
}

void Loop::run_events() {
  handling_ = true;
  while (!events_.empty()) {
    const relay::Event event = std::move(events_.front());
    events_.pop_front();
    perform(relay.handle(event, now_));
  }
  handling_ = false;
}

void Loop::perform(relay::Effects&& effects) {
  for (relay::Effect& effect : effects) perform(effect);
}

void Loop::perform(relay::Effect& effect) {
  namespace fx = relay::effect;
  if (auto* send = std::get_if<fx::Send>(&effect)) {
    if (Connection* c = find(send->socket)) c->send_text(send->text);
  } else if (auto* admit = std::get_if<fx::Admit>(&effect)) {
    if (Connection* c = find(admit->socket)) c->admit(admit->role, admit->meter);
  } else if (auto* splice = std::get_if<fx::Splice>(&effect)) {
    Connection* mac = find(splice->mac);
    Connection* phone = find(splice->phone);
    if (mac != nullptr && phone != nullptr) mac->splice_with(*phone);
  } else if (auto* unsplice = std::get_if<fx::Unsplice>(&effect)) {
    if (Connection* c = find(unsplice->socket)) c->unsplice();
  } else if (auto* close = std::get_if<fx::Close>(&effect)) {
    if (Connection* c = find(close->socket)) c->close_by_relay(close->reason, close->text);
  } else if (auto* reply = std::get_if<fx::Reply>(&effect)) {
    const auto at = requests_.find(reply->request);
    if (at == requests_.end()) return;
    Connection* const c = at->second;
    requests_.erase(at);
    c->reply(*reply);
  } else if (other_effect) {
    other_effect(std::move(effect));
  }
}

// ---------------------------------------------------------------- connections

void Loop::accepted(Socket socket, const Address& remote) {
  ConnectionPtr connection(new Connection(*this, std::move(socket), remote));
  connection->place = static_cast<std::uint32_t>(connections_.size());
  connections_.push_back(connection);
  ++counters.connections;
  heap_.accepted();
  connection->start();
}

SocketId Loop::register_socket(Connection& connection) {
  std::uint32_t slot;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(nullptr);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  assert(slot < 1u << kSlotBits);
  slots_[slot] = &connection;
  ++counters.upgrades_total;
  ++counters.websockets;
  return SocketId{next_socket_++ << kSlotBits | slot};
}

Connection* Loop::find(SocketId id) const noexcept {
  const std::uint64_t slot = id.value & ((std::uint64_t{1} << kSlotBits) - 1);
  if (slot >= slots_.size() || slots_[slot] == nullptr || slots_[slot]->id() != id) return nullptr;
  return slots_[slot];
}

RequestId Loop::register_request(Connection& connection) {
  const RequestId id{next_request_++};
  requests_.emplace(id, &connection);
  return id;
}

void Loop::forget(Connection& connection) {
  --counters.connections;
  if (connection.is_websocket()) {
    const auto slot = static_cast<std::uint32_t>(connection.id().value & ((1u << kSlotBits) - 1));
    slots_[slot] = nullptr;
    free_slots_.push_back(slot);
    --counters.websockets;
  }
  if (shut_) return;
  ConnectionPtr& place = connections_[connection.place];
  graveyard_.push_back(std::move(place));
  if (connections_.back()) {
    place = std::move(connections_.back());
    place->place = connection.place;
  }
  connections_.pop_back();
}

// ---------------------------------------------------------------- un-admitted sockets take turns

void Loop::enter(Connection& connection) {
  entries_.emplace_back(&connection);
  if (std::exchange(entries_posted_, true)) return;
  boost::asio::post(io, [weak = weak_from_this()] {
    if (const auto self = weak.lock(); self != nullptr && !self->shut_) self->serve_entries();
  });
}

void Loop::serve_entries() {
  const Turn turn(*this);
  const TimePoint until = mono() + kEntryShare;
  do {
    const ConnectionPtr connection = std::move(entries_.front());
    entries_.pop_front();
    connection->serve_entry();
  } while (!entries_.empty() && monotonic_now() < until);
  entries_posted_ = !entries_.empty();
  if (!entries_posted_) return;
  boost::asio::post(io, [weak = weak_from_this()] {
    if (const auto self = weak.lock(); self != nullptr && !self->shut_) self->serve_entries();
  });
}

}  // namespace tandem::net

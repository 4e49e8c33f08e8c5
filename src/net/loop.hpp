// What the parts of the network half share: settings, buffers, timers, the relay and the way to it, and who is to be
// looked after at the end of a turn. A turn is one entry from Asio (or from the outside) and reads the clock once.
//
// Re-entrancy: effects are performed after Relay::handle returned; an event that arises meanwhile waits in a queue. A
// connection that was written to, broke, or may go on is only noted, and looked after when the turn ends.
#pragma once

#include "net/connection.hpp"
#include "net/heap_trim.hpp"
#include "net/listener.hpp"
#include "net/loop_buffers.hpp"
#include "net/pacer.hpp"
#include "tandem/core/observer.hpp"
#include "tandem/net/server.hpp"
#include "tandem/net/settings.hpp"
#include "tandem/net/timer_wheel.hpp"
#include "tandem/net/tls_context.hpp"
#include "tandem/relay/relay.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/intrusive_ptr.hpp>

namespace tandem::net {

using ConnectionPtr = boost::intrusive_ptr<Connection>;

class Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(boost::asio::io_context& io, relay::Relay& relay, Observer& observer, Settings settings);
  ~Loop();
  void start();
  void shut();  // drops everything: no handler touches the loop afterwards

  class Turn {
   public:
    explicit Turn(Loop& loop);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Loop& loop_;
  };

  // ---- shared state
  boost::asio::io_context& io;
  relay::Relay& relay;
  Observer& observer;
  Settings settings;
  LoopBuffers buffers;
  Batch batch;
  TimerWheel wheel;
  BoxPacer box;
  Counters counters;
  std::shared_ptr<const TlsContext> tls;
  std::function<void(relay::Effect&&)> other_effect;
  [[nodiscard]] Now now() const noexcept { return now_; }
  [[nodiscard]] TimePoint mono() const noexcept { return now_.mono; }
  void observe(const Observed& what) { observer.observe(what); }

  // ---- events and effects
  void dispatch(const relay::Event& event);

  // ---- connections
  void accepted(Socket socket, const Address& remote);
  [[nodiscard]] SocketId register_socket(Connection& connection);
  void release_socket(SocketId id);
  [[nodiscard]] RequestId register_request(Connection& connection);
  void release_request(RequestId id) { requests_.erase(id); }
  void forget(Connection& connection);  // it is dead
  void touch(Connection& connection);   // look after it when the turn ends
  void enter(Connection& connection);   // un-admitted and readable: served from a bounded share of each turn

  // ---- listening, stopping
  std::vector<std::unique_ptr<Listener>> listeners;
  void update(Settings fresh);
  void stop(std::function<void()> done);
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }
  void reschedule_box() { wheel.set(box_timer_, box.next_grant(mono())); }

 private:
  void perform(relay::Effects&& effects);
  void perform(relay::Effect& effect);
  void run_events();
  void end_turn();
  void on_timer();
  void arm_timer();
  void heartbeat();
  void serve_entries();
  void hear_last_words();
  void check_stopped();
  [[nodiscard]] Connection* find(SocketId id) const noexcept;

  Now now_;
  int depth_ = 0;          // turns within turns: only the outermost ends one
  bool handling_ = false;  // inside Relay::handle or perform
  bool stopping_ = false, shut_ = false;
  std::deque<relay::Event> events_;
  std::vector<ConnectionPtr> touched_, touched_now_;
  std::deque<ConnectionPtr> entries_;
  bool entries_posted_ = false;

  std::vector<ConnectionPtr> connections_;  // each knows its place
  std::vector<ConnectionPtr> graveyard_;    // dead in this turn
  std::vector<Connection*> slots_;          // WebSockets by the low bits of their id
  std::vector<std::uint32_t> free_slots_;
  std::uint64_t next_socket_ = 1, next_request_ = 1;
  std::unordered_map<RequestId, Connection*> requests_;

  boost::asio::steady_timer timer_;
  TimePoint timer_due_ = kNever, relay_due_ = kNever, heartbeat_due_;
  TimerNode box_timer_, stop_timer_, last_words_timer_;
  TimePoint last_words_until_ = kNever;
  std::uint64_t relayed_at_check_ = 0;
  int quiet_checks_ = 0;
  std::uint64_t relayed_at_heartbeat_ = 0;
  TimePoint last_heartbeat_;
  HeapTrim heap_;
  std::function<void()> stopped_;
};

}  // namespace tandem::net

// One accepted connection through its whole life: PROXY header, TLS, HTTP, then a WebSocket that is pending, admitted
// (and spliced), closing. The phases only move forward. Split over several sources by theme: connection.cpp (life,
// reading, timers), connection_http.cpp, connection_frames.cpp, connection_splice.cpp, connection_close.cpp,
// connection_health.cpp.
//
// Parked sockets are many: what is not needed then is not held (HTTP, assembly, queued pongs, output are all given
// back).
#pragma once

#include "net/transport.hpp"
#include "tandem/core/close_reason.hpp"
#include "tandem/net/client_address.hpp"
#include "tandem/net/source_speed.hpp"
#include "tandem/net/timer_wheel.hpp"
#include "tandem/net/ws_codec.hpp"
#include "tandem/relay/effect.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

namespace tandem::net {

class Loop;
class RateBucket;
struct HttpSession;

// Frames on their way from the connection being read to its peer; one per loop, empty between turns.
struct Batch {
  std::size_t size = 0;      // bytes in LoopBuffers::frames
  std::size_t frame_at = 0;  // where the open frame's head is reserved
  bool open = false;
  std::uint64_t bytes = 0;  // payload since the meter last looked
  std::uint32_t messages = 0;
};

class Connection final : public TimerNode,
                         public boost::intrusive_ref_counter<Connection, boost::thread_unsafe_counter> {
 public:
  enum class Phase : std::uint8_t { proxy, handshake, http, pending, admitted, closing, lingering, dead };

  static constexpr std::size_t kEntryRead = 16 * 1024;  // at once, before admission: there is little to say
  // Unsent beyond what a splice puts there: TLS itself answers some of what a client sends (alerts, key updates), so
  // who takes none of it is read no further.
  static constexpr std::size_t kUnreadAnswers = 512 * 1024;
  static constexpr std::size_t kShare = 128 * 1024;  // of a splice's source in one turn

  Connection(Loop& loop, Socket socket, const Address& remote);
  ~Connection();
  void start();

  // ---- from the loop
  void on_timer();
  void serve_entry();                // an un-admitted socket's share of the turn
  void settle();                     // the end of a turn in which it was touched
  void go_on(std::uint64_t bytes);   // the box's pacer lets it read so much
  void stop_serving();               // graceful stop, for those that are no WebSocket
  [[nodiscard]] bool quiet() const;  // nothing of its splice is under way, as far as one can see from here
  void destroy();
  void settings_changed();

  // ---- effects
  void send_text(std::string_view text);
  void admit(Role role, room::Meter* meter);
  void splice_with(Connection& peer);
  void unsplice();
  void close_by_relay(CloseReason reason, std::string_view text);
  void reply(const relay::effect::Reply& reply);

  [[nodiscard]] Phase phase() const noexcept { return phase_; }
  [[nodiscard]] bool is_websocket() const noexcept { return id_.value != 0; }
  [[nodiscard]] SocketId id() const noexcept { return id_; }

  std::uint32_t place = 0;  // among the loop's connections
  bool touched = false;     // noted for the end of the turn

 private:
  // ---- reading (connection.cpp)
  void arm();
  void on_readable();
  void on_writable();
  [[nodiscard]] bool wants_read();
  void read_splice();
  void judge_speed();
  void forget_speed();
  std::size_t receive(std::size_t most);
  void take_in();  // decrypts what was received and consumes it
  void consume(std::span<const std::uint8_t> bytes);
  void input_ended(bool orderly);
  void reschedule();
  void read_proxy_header();
  void begin_handshake();
  void go_on_handshake();

  // ---- HTTP
  void advance_http();
  void take_head(std::size_t size);
  void submit();
  void upgrade(const RoomName& room, std::string_view key);
  void respond(std::uint16_t status, std::string_view type, std::string_view body, std::string_view fields,
               bool keep_alive);
  void refuse(RejectReason reason, std::uint16_t status, std::string_view body, std::string_view fields,
              bool keep_alive);
  void next_request();
  [[nodiscard]] bool before_websocket() const noexcept { return phase_ <= Phase::http; }

  // ---- frames
  void consume_frames(std::span<const std::uint8_t> in);
  void begin_frame();
  [[nodiscard]] std::size_t take_payload(std::span<const std::uint8_t> in);
  void gather(std::unique_ptr<std::string>& target, std::span<const std::uint8_t> piece);
  void end_frame();
  void control_frame();
  void message_complete();
  void write_frame(Opcode opcode, std::span<const std::uint8_t> payload);
  void queue_pong(std::span<const std::uint8_t> payload);
  void flush_pongs();
  void dispatch(const relay::Event& event);

  // ---- splice
  void forward(std::span<const std::uint8_t> in);
  void open_fragment();
  void close_fragment(bool fin);
  void write_batch();
  void finish_batch();
  void account();
  void part_from(Connection& leaver);
  [[nodiscard]] std::size_t read_budget();
  [[nodiscard]] std::size_t room_for_more() const;
  [[nodiscard]] bool full() const;  // takes no more from its source

  // ---- ends
  void note_end(Initiator by, std::uint16_t code, CloseReason reason);
  void fault(CloseReason reason);  // ours: protocol error and the like; tells the core
  void close_with(std::uint16_t code, std::string_view text, Duration grace);
  void close_phase(Duration grace);
  void leave_splice();
  void finish();  // everything was said: half-close, then linger
  void discard();

  // ---- health
  void check_keepalive();
  void check_stall();
  void watch_output();
  [[nodiscard]] bool held_back() const;  // un-admitted, and as much is kept behind its proof as may be
  void watch_held();

  Loop& loop_;
  Transport transport_;
  Connection* peer_ = nullptr;
  room::Meter* meter_ = nullptr;
  FrameReader reader_;
  SourceSpeed speed_;
  RoomName room_;
  SocketId id_{};
  Address remote_;
  ClientKey client_;

  TimePoint opened_;             // accepted; from the upgrade on: upgraded
  TimePoint deadline_ = kNever;  // of the phase: handshake, head, body, close
  TimePoint ping_due_ = kNever, stall_due_ = kNever, pace_due_ = kNever;
  TimePoint output_moved_{};  // when an acknowledgement was last seen to come, while something is outstanding
  TimePoint blocked_since_ = kNever, closing_since_{};
  std::uint64_t acked_seen_ = 0, watched_ = 0;     // for the stall rule
  std::uint64_t ping_at_ = 0, acked_at_ping_ = 0;  // for the keepalive rule
  std::uint64_t bytes_in_ = 0, bytes_out_ = 0;     // payload

  std::unique_ptr<HttpSession> http_;
  std::unique_ptr<std::string> assembly_;  // of a message before admission
  std::unique_ptr<std::string> control_;   // of a control frame's payload
  std::unique_ptr<std::string> stash_;     // received behind a proof that is not decided, or before the TLS handshake
  std::unique_ptr<std::vector<std::string>> pongs_;
  std::shared_ptr<RateBucket> pace_;  // shared by the two of a room

  Phase phase_ = Phase::handshake;
  Role role_ = Role::mac;
  enum class Course : std::uint8_t {
    none,
    skip,
    fresh,
    begun
  } course_ = Course::none;  // of the message being received
  Opcode message_opcode_ = Opcode::text;
  std::uint8_t messages_ = 0;               // given to the core before admission: hello, proof
  bool reading_ = false, writing_ = false;  // an async_wait is out
  bool queued_ = false;                     // waits for its share of a turn
  bool has_role_ = false;
  bool ended_ = false;     // its end was reported
  bool garbled_ = false;   // the frames cannot be followed any more
  bool answered_ = false;  // closing: nothing more is to come from the other side
  bool input_over_ = false;
  bool heard_ = false;   // received something since the last keepalive tick
  bool unread_ = false;  // left unread by backpressure or pacing since then
  bool ping_out_ = false;
  bool stalled_out_ = false;  // closing for being too slow
  bool box_waiting_ = false;
};

}  // namespace tandem::net

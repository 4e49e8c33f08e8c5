// Splices that must not notice: pairings stream at a rate while hostile connections of every kind come and go.
#include "app/bench_attacks.hpp"
#include "app/bench_streams.hpp"
#include "tandem/core/authority.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <openssl/rand.h>

namespace tandem::app {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = BenchRun::Clock;
using std::chrono::duration;
using std::chrono::milliseconds;

constexpr std::size_t kMostUnsent = 128 * 1024;
constexpr double kKept = 0.9;  // of their throughput, at least

std::uint64_t any_seed() {
  std::uint64_t value = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&value), sizeof value);
  return value;
}

// ---- one hostile connection

class Hostile : public std::enable_shared_from_this<Hostile> {
 public:
  virtual ~Hostile() = default;
  virtual void send(std::string_view bytes) = 0;
  virtual void leave(Attack::Leave how) = 0;  // no handler is called after
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  [[nodiscard]] bool is_over() const noexcept { return over_; }

 protected:
  bool open_ = false, over_ = false;
};

class HostileTls final : public Hostile {
 public:
  void start(BenchRun& run, bool reads) {
    const auto me = std::static_pointer_cast<HostileTls>(shared_from_this());
    socket_ = client::TlsSocket::open(run.loop(), run.trust(), run.next_destination(),
                                      {.opened = [me] { me->open_ = true; },
                                       .received = nullptr,
                                       .ended = [me](const std::string&) { me->over_ = true; }});
    socket_->pause_reading(!reads);
  }
  void send(std::string_view bytes) override {
    if (!over_ && socket_->unsent() < kMostUnsent) socket_->send(bytes_of(bytes));
  }
  void leave(Attack::Leave) override { socket_->close(); }

 private:
  std::shared_ptr<client::TlsSocket> socket_;
};

class HostileTcp final : public Hostile {
 public:
  explicit HostileTcp(asio::io_context& loop) : socket_(loop) {}
  void start(const client::Destination& destination) {
    const auto to = Authority::parse(destination.connect.empty() ? destination.host : destination.connect);
    error_code error;
    const auto address = asio::ip::make_address(to->host(), error);
    if (error) return void(over_ = true);
    const tcp::endpoint place(address, to->port().value_or(443));
    socket_.open(place.protocol(), error);
    if (!destination.source.empty()) socket_.bind({asio::ip::make_address(destination.source), 0}, error);
    if (error) return void(over_ = true);
    socket_.async_connect(place, [me = self()](const error_code& e) {
      me->over_ = static_cast<bool>(e);
      if (e) return;
      me->open_ = true;
      me->socket_.non_blocking(true);
      me->read();
    });
  }
  void send(std::string_view bytes) override {
    error_code error;
    if (!over_) socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);  // what does not fit is lost
  }
  void leave(Attack::Leave how) override {
    error_code ignored;
    if (how == Attack::Leave::half_close) {
      socket_.shutdown(tcp::socket::shutdown_send, ignored);
      return;
    }
    if (how == Attack::Leave::reset) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
  }

 private:
  std::shared_ptr<HostileTcp> self() { return std::static_pointer_cast<HostileTcp>(shared_from_this()); }
  void read() {
    socket_.async_read_some(asio::buffer(input_), [me = self()](const error_code& e, std::size_t) {
      if (e)
        me->over_ = true;
      else
        me->read();
    });
  }
  tcp::socket socket_;
  std::array<char, 4096> input_{};
};

// ---- many of them: each slot performs an attack for some seconds, then another

class Horde {
 public:
  Horde(BenchRun& run, const BenchOptions& options)
      : run_(run), options_(options), random_(any_seed()), slots_(static_cast<std::size_t>(options.attackers)) {
    // The first ones are spread over a life, as those that follow will be.
    for (Slot& slot : slots_) slot.next_at = Clock::now() + some(kLife);
  }

  // Called often: performs what is due.
  void advance() {
    const auto now = Clock::now();
    if (now - looked_ < milliseconds(5)) return;
    looked_ = now;
    for (Slot& slot : slots_)
      if (now >= slot.next_at) act(slot, now);
  }
  void leave() {
    at_once_ = static_cast<double>(std::count_if(
        slots_.begin(), slots_.end(), [](const Slot& s) { return s.main && s.main->is_open() && !s.main->is_over(); }));
    for (Slot& slot : slots_) end(slot);
  }
  [[nodiscard]] double opened() const { return static_cast<double>(opened_); }
  [[nodiscard]] double at_once() const { return at_once_; }  // open when they left

 private:
  static constexpr milliseconds kLife{8000};
  struct Slot {
    Attack attack;
    std::shared_ptr<Hostile> main, companion;
    Clock::time_point next_at{}, ends_at{};
    std::size_t sent = 0;
    bool began = false;
  };

  milliseconds some(milliseconds bound) {
    return milliseconds(static_cast<long>(random_.below(static_cast<std::uint64_t>(bound.count()))));
  }

  void act(Slot& slot, Clock::time_point now) {
    slot.next_at = now + milliseconds(20);
    if (!slot.main) return begin(slot, now);
    if (now >= slot.ends_at) return end(slot);
    if (slot.main->is_over()) return void(slot.next_at = slot.ends_at);  // the next one comes in its time
    if (!slot.main->is_open()) return;
    go_on(slot, now);
  }

  void begin(Slot& slot, Clock::time_point now) {
    slot.attack = make_attack(kind_++, options_.host, run_.fresh_room(), random_);
    slot.main = open(slot.attack.tls, slot.attack.reads);
    slot.ends_at = now + kLife / 2 + some(kLife);
    slot.sent = 0;
    slot.began = false;
  }

  std::shared_ptr<Hostile> open(bool tls, bool reads) {
    ++opened_;
    if (tls) {
      const auto hostile = std::make_shared<HostileTls>();
      hostile->start(run_, reads);
      return hostile;
    }
    const auto hostile = std::make_shared<HostileTcp>(run_.loop());
    hostile->start(run_.next_destination());
    return hostile;
  }

  void go_on(Slot& slot, Clock::time_point now) {
    Attack& attack = slot.attack;
    if (attack.drip && slot.sent < attack.first.size()) {
      return slot.main->send(std::string_view(attack.first).substr(slot.sent++, 1));
    }
    if (!std::exchange(slot.began, true)) {
      if (!attack.drip && !attack.first.empty()) slot.main->send(attack.first);
      if (attack.leave == Attack::Leave::reset) return end(slot);
      if (attack.leave == Attack::Leave::half_close) slot.main->leave(attack.leave);
      if (!attack.companion.empty()) slot.companion = open(true, false);
    } else if (slot.companion && slot.companion->is_open() && !attack.companion.empty()) {
      slot.companion->send(std::exchange(attack.companion, {}));
    } else if (!attack.again.empty()) {
      slot.main->send(attack.again);
    }
    slot.next_at = attack.again.empty() && attack.companion.empty() ? slot.ends_at : now + attack.every;
  }

  void end(Slot& slot) {
    if (slot.main) {
      const bool reset = slot.attack.leave == Attack::Leave::reset;
      slot.main->leave(reset ? Attack::Leave::reset : Attack::Leave::close);
      if (reset) slot.next_at = std::max(slot.next_at, slot.ends_at);
    }
    if (slot.companion) slot.companion->leave(Attack::Leave::close);
    slot.main = slot.companion = nullptr;
  }

  BenchRun& run_;
  const BenchOptions& options_;
  SeededRandom random_;
  std::vector<Slot> slots_;
  Clock::time_point looked_{};
  std::size_t kind_ = 0;
  double at_once_ = 0;
  std::uint64_t opened_ = 0;
};

// The horde in a thread and a loop of its own, so that the streams are measured and not what it costs to make attacks.
class Crowd {
 public:
  explicit Crowd(const BenchOptions& options) : run_(options, silent_), horde_(run_, options) {
    run_.skip_sources(static_cast<std::uint64_t>(options.rooms) * 2);
    thread_ = std::thread([this] {
      (void)run_.run_until(Clock::time_point::max(), [this] {
        horde_.advance();
        return over_.load();
      });
      horde_.leave();
      run_.run_for(milliseconds(100));
    });
  }
  ~Crowd() { disperse(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  // Ends all of them; what they did may be asked after that.
  void disperse() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] const Horde& horde() const { return horde_; }

 private:
  const BenchProgress silent_;
  BenchRun run_;
  Horde horde_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

double rate(const Streams::Measured& m) { return m.messages / m.seconds; }

}  // namespace

BenchRow bench_hostile(const BenchOptions& options, const BenchProgress& progress) {
  BenchRun run(options, progress);
  const duration<double> each(options.run_seconds);
  run.expect(2 * each);
  Streams streams(run, options);
  if (!streams.pair_all()) run.fault("not every room was paired in time");
  Streams::Measured calm = streams.send_for(each);
  Crowd crowd(options);
  (void)streams.send_for(std::min(each, duration<double>(8)));  // until all of them are there
  Streams::Measured under = streams.send_for(each);
  crowd.disperse();
  (void)streams.finish();
  run.run_for(milliseconds(100));
  const double kept = rate(calm) > 0 ? rate(under) / rate(calm) : 0;
  if (kept < kKept) run.fault("less than 90 % of the throughput was kept");
  const double mib = options.frame_bytes / (1024.0 * 1024.0);
  return {"hostile",
          {{"rooms", static_cast<double>(options.rooms)},
           {"attack_kinds", static_cast<double>(attack_kinds())},
           {"attackers_opened", crowd.horde().opened()},
           {"attackers_at_once", crowd.horde().at_once()},
           {"calm_mib_per_second", rate(calm) * mib},
           {"attacked_mib_per_second", rate(under) * mib},
           {"kept", kept},
           {"calm_latency_p99_ms", percentile_ms(calm.latencies, 0.99)},
           {"attacked_latency_p99_ms", percentile_ms(under.latencies, 0.99)}},
          run.faults()};
}

}  // namespace tandem::app

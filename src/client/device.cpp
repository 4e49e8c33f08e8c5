#include "tandem/client/device.hpp"

#include "tandem/net/clock.hpp"

#include <chrono>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tandem::client {
namespace asio = boost::asio;

struct Device::Impl {
  Impl(asio::io_context& io, TlsTrust tls, std::unique_ptr<MapSource> source, RandomSource& random, DeviceSettings s,
       Watchers w)
      : loop(io),
        trust(std::move(tls)),
        map(std::move(source)),
        settings(std::move(s)),
        watchers(std::move(w)),
        agent(settings.agent, random),
        timer(io) {}
  ~Impl() {
    if (endpoint) endpoint->abort();
    if (map) map->cancel();
  }

  // ---- what the agent decides

  void perform(const Actions& actions) {
    for (const Action& action : actions) std::visit([this](const auto& a) { carry_out(a); }, action);
    arm();
  }

  void carry_out(const action::Connect& connect) {
    if (endpoint) endpoint->abort();
    if (watchers.connecting) watchers.connecting(connect.host);
    const JoinSettings join{
        .role = settings.agent.role, .room = settings.agent.room, .key = settings.key, .ticket = connect.ticket};
    const Attempt attempt = connect.attempt;
    endpoint = Endpoint::open(loop, trust, destination(connect.host), join,
                              {.admitted = [this, attempt](const std::string& token) { admitted(attempt, token); },
                               .message = [this, attempt](Opcode op, ByteView bytes) { received(attempt, op, bytes); },
                               .ended = [this, attempt](const Ending& ending) { ended(attempt, ending); }});
  }

  void carry_out(const action::Abandon&) {
    if (endpoint) endpoint->abort();
    endpoint.reset();
    call.reset();
  }

  void carry_out(const action::FetchMap&) {
    map->fetch([this](const MapAnswer& answer) {
      const TimePoint now = net::monotonic_now();
      if (const auto* fetched = std::get_if<FetchedMap>(&answer))
        perform(agent.map_fetched(fetched->map, fetched->max_age, now));
      else if (const auto* same = std::get_if<MapUnchanged>(&answer))
        perform(agent.map_unchanged(same->max_age, now));
      else
        perform(agent.map_failed(now));
    });
  }

  void carry_out(const action::Attest& wanted) {
    const Attempt attempt = wanted.attempt;
    call = attest(loop, trust, destination(wanted.host), settings.agent.room, *settings.attestor,
                  [this, attempt](const std::variant<std::string, Ending>& result) {
                    const auto* ticket = std::get_if<std::string>(&result);
                    perform(ticket != nullptr
                                ? agent.attested(attempt, *ticket, net::monotonic_now())
                                : agent.attest_failed(attempt, std::get<Ending>(result), net::monotonic_now()));
                  });
  }

  void carry_out(const action::Register& wanted) {
    const Attempt attempt = wanted.attempt;
    call = register_verifier(loop, trust, destination(wanted.host), settings.agent.room, registration_token,
                             ed25519_public_key(settings.key), wanted.attested ? settings.attestor : nullptr,
                             [this, attempt](const std::optional<Ending>& fault) {
                               if (fault)
                                 perform(agent.register_failed(attempt, *fault, net::monotonic_now()));
                               else if (watchers.registered)
                                 watchers.registered();
                             });
  }

  void carry_out(const action::Remember& news) {
    if (watchers.remember) watchers.remember(news.memory);
  }

  void carry_out(const action::Show& show) {
    if (watchers.standing) watchers.standing(show.standing, show.why);
  }

  // ---- what happens to it

  void admitted(Attempt attempt, const std::string& token) {
    registration_token = token;
    if (watchers.admitted) watchers.admitted();
    perform(agent.admitted(attempt, net::monotonic_now()));
  }

  void received(Attempt attempt, Opcode opcode, ByteView bytes) {
    agent.heard_peer(attempt);
    if (watchers.message) watchers.message(opcode, bytes);
  }

  void ended(Attempt attempt, const Ending& ending) {
    endpoint.reset();
    if (watchers.ended) watchers.ended(ending);
    perform(agent.ended(attempt, ending, net::monotonic_now()));
  }

  void arm() {
    const TimePoint deadline = agent.next_deadline();
    if (deadline == armed_for) return;
    armed_for = deadline;
    if (deadline == kNever) {
      timer.cancel();
      return;
    }
    timer.expires_at(std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(deadline.time_since_epoch())));
    timer.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      armed_for = kNever;
      perform(agent.advance(net::monotonic_now()));
    });
  }

  Destination destination(const std::string& host) const {
    return {
        .host = host, .connect = settings.connect ? settings.connect(host) : std::string{}, .source = settings.source};
  }

  asio::io_context& loop;
  TlsTrust trust;
  std::unique_ptr<MapSource> map;
  DeviceSettings settings;
  Watchers watchers;
  Agent agent;
  asio::steady_timer timer;
  TimePoint armed_for = kNever;
  std::shared_ptr<Endpoint> endpoint;
  PostHandle call;
  std::string registration_token;
};

Device::Device(asio::io_context& loop, TlsTrust trust, std::unique_ptr<MapSource> map, RandomSource& random,
               DeviceSettings settings, Watchers watchers)
    : impl_(std::make_unique<Impl>(loop, std::move(trust), std::move(map), random, std::move(settings),
                                   std::move(watchers))) {}
Device::~Device() = default;

void Device::start() { impl_->perform(impl_->agent.start(net::monotonic_now())); }

void Device::stop() {
  if (impl_->map) impl_->map->cancel();
  if (impl_->endpoint && impl_->endpoint->is_admitted()) {
    impl_->endpoint->close(1000, "");
    impl_->endpoint.reset();
  }
  impl_->perform(impl_->agent.stop());
}

bool Device::send(Opcode opcode, ByteView payload) {
  if (!impl_->endpoint || !impl_->endpoint->is_admitted()) return false;
  impl_->endpoint->send(opcode, payload);
  return true;
}

void Device::drop() {
  if (!impl_->endpoint) return;
  impl_->endpoint->abort();
  impl_->ended(impl_->agent.attempt(), Closed{1006, {}});
}

const Agent& Device::agent() const noexcept { return impl_->agent; }

}  // namespace tandem::client

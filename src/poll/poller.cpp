#include "tandem/poll/poller.hpp"

#include "tandem/net/clock.hpp"
#include "tandem/net/http_fetch.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace tandem::poll {

namespace asio = boost::asio;
using relay::MapOutcome;

namespace {

constexpr std::size_t kMaxShownBytes = 200;  // of an offending value: /status is no place for a megabyte
constexpr std::size_t kMaxEtagBytes = 1024;

std::string clipped(std::string text) {
  if (text.size() > kMaxShownBytes) text = text.substr(0, kMaxShownBytes) + "...";
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

Fault fault_of(const net::FetchFailure& failure) {
  Fault f;
  f.cause = failure.cause;
  f.detail = failure.detail;
  f.retryable = failure.retryable;
  if (failure.oversize_bytes) {
    f.kind = shard::label(shard::MapFaultKind::too_large);
    f.value = std::to_string(*failure.oversize_bytes);
  }
  return f;
}

Fault fault_of(const shard::MapFault& refused) {
  Fault f;
  f.cause = net::FetchCause::parse;
  f.kind = shard::label(refused.kind);
  f.value = clipped(refused.value);
  f.detail = clipped(refused.message);
  f.retryable = false;
  return f;
}

}  // namespace

struct Poller::Impl : std::enable_shared_from_this<Poller::Impl> {
  MapSource source;
  Observer& observer;
  OnMap on_map;
  OnBoot on_boot;
  PollPlan plan;
  net::HttpFetcher fetcher;
  asio::steady_timer timer;
  net::Fetch running;
  bool stopped = false;
  std::string etag;  // of the map last accepted: what may be asked for with If-None-Match
  std::shared_ptr<const shard::ShardMap> held;
  // The body read last and what it was: an unchanged one, good or refused, is not parsed again.
  std::string seen_body;
  std::variant<std::shared_ptr<const shard::ShardMap>, shard::MapFault> seen;

  Impl(asio::io_context& loop, MapSource s, const PollSettings& settings, RandomSource& chance, Observer& o, OnMap m)
      : source(std::move(s)),
        observer(o),
        on_map(std::move(m)),
        plan(settings, chance, net::monotonic_now()),
        fetcher(loop),
        timer(loop) {}

  void arm() {
    timer.expires_after(std::max(Duration::zero(), plan.next_step() - net::monotonic_now()));
    timer.async_wait([weak = weak_from_this()](boost::system::error_code ec) {
      const auto self = weak.lock();
      if (self && !ec && !self->stopped) self->attempt();
    });
  }

  void attempt() {
    const TimePoint now = net::monotonic_now();
    if (now < plan.next_step()) return arm();
    const auto timeout = plan.begin_attempt(now);
    if (!timeout) {
      const auto last = plan.failing(now);
      return boot_ended(last ? std::string(last->fault.cause_label()) + ": " + last->fault.detail
                             : "timeout: no answer in time");
    }
    net::FetchRequest request;
    request.url = source.url;
    request.ca_file = source.ca_file;
    request.timeout = *timeout;
    request.max_body_bytes = shard::kMaxMapBytes;
    if (!etag.empty()) request.headers.emplace_back("If-None-Match", etag);
    running = fetcher.start(std::move(request), [weak = weak_from_this()](net::FetchResult result) {
      if (const auto self = weak.lock(); self && !self->stopped) self->attempt_ended(std::move(result));
    });
  }

  void attempt_ended(net::FetchResult result) {
    std::optional<Fault> fault;
    if (const auto* failure = std::get_if<net::FetchFailure>(&result))
      fault = fault_of(*failure);
    else if (auto& answer = std::get<net::FetchAnswer>(result); answer.status != 304)
      fault = take(answer);
    if (stopped) return;  // the relay may have been told to stop meanwhile
    const auto ended = plan.end_attempt(fault, net::monotonic_now());
    if (ended.failed) observer.observe(observed::MapFetchFailed{net::label(*ended.failed)});
    if (ended.absorbed_retries > 0) observer.observe(observed::MapFetchRetried{ended.absorbed_retries});
    if (ended.streak) observer.observe(*ended.streak);
    if (ended.booted) boot_ended(std::nullopt);
    if (!stopped) arm();
  }

  // A body that came with 200.
  [[nodiscard]] std::optional<Fault> take(net::FetchAnswer& answer) {
    if (answer.body != seen_body || (seen.index() == 0 && std::get<0>(seen) == nullptr)) {
      auto parsed = shard::ShardMap::parse(answer.body);
      seen_body = std::move(answer.body);
      if (auto* map = std::get_if<shard::ShardMap>(&parsed))
        seen = std::make_shared<const shard::ShardMap>(std::move(*map));
      else
        seen = std::move(std::get<shard::MapFault>(parsed));
    }
    if (const auto* refused = std::get_if<shard::MapFault>(&seen)) return fault_of(*refused);
    const auto& map = std::get<0>(seen);
    const Offered offered = on_map(map);
    if (offered.kind == MapOutcome::Kind::adopted || offered.kind == MapOutcome::Kind::same) {
      held = map;
      const auto tag = answer.header("etag").value_or("");
      etag = tag.size() <= kMaxEtagBytes ? tag : "";
      return std::nullopt;
    }
    if (!plan.booting()) return std::nullopt;
    Fault f;
    f.value = std::to_string(map->version().value);
    f.detail = "the map's version " + f.value + " is older than the newest this host has seen, " +
               std::to_string(offered.newest_seen.value) +
               "; where that one was a mistake, `tandemctl floor --reset` forgets it";
    return f;
  }

  void boot_ended(const std::optional<std::string>& fault) {
    if (const auto call = std::exchange(on_boot, nullptr)) call(fault);
  }
};

Poller::Poller(asio::io_context& loop, MapSource source, const PollSettings& settings, RandomSource& chance,
               Observer& observer, OnMap on_map)
    : impl_(std::make_shared<Impl>(loop, std::move(source), settings, chance, observer, std::move(on_map))) {}
Poller::~Poller() { stop(); }

void Poller::start(OnBoot on_boot) {
  impl_->on_boot = std::move(on_boot);
  impl_->arm();
}

void Poller::stop() {
  impl_->stopped = true;
  impl_->running.cancel();
  impl_->timer.cancel();
}

Duration Poller::age() const { return impl_->plan.age(net::monotonic_now()); }
std::optional<LastFault> Poller::failing() const { return impl_->plan.failing(net::monotonic_now()); }
std::optional<LastFault> Poller::recovered() const { return impl_->plan.recovered(); }
std::shared_ptr<const shard::ShardMap> Poller::map() const { return impl_->held; }

}  // namespace tandem::poll

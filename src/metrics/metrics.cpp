#include "tandem/metrics/metrics.hpp"

#include "close_series.hpp"
#include "sampled.hpp"
#include "tandem/net/http_fetch.hpp"
#include "tandem/protocol/attest.hpp"
#include "tandem/protocol/endpoint.hpp"

#include <array>
#include <sstream>

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace tandem::metrics {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;
using Labels = std::map<std::string, std::string>;
using protocol::Answer;

namespace {

Family<Counter>& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(std::string("tandem_") + name).Help(help).Register(registry);
}

Counter& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return counters(registry, name, help).Add({});
}

Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help,
                     const Histogram::BucketBoundaries& bounds) {
  auto& family = prometheus::BuildHistogram().Name(std::string("tandem_") + name).Help(help).Register(registry);
  return family.Add({}, bounds);
}

// One label whose values are a fixed list; anything else counts as "other".
class ByLabel {
 public:
  void add(Family<Counter>& family, const std::string& name, std::string value, const Labels& others = {}) {
    Labels labels = others;
    labels[name] = value;
    series_[std::move(value)] = &family.Add(labels);
  }
  void count(std::string_view value) {
    auto found = series_.find(value);
    if (found == series_.end()) found = series_.find("other");
    if (found != series_.end()) found->second->Increment();
  }

 private:
  std::map<std::string, Counter*, std::less<>> series_;
};

struct EndpointAnswers {
  const char* path;
  std::vector<Answer> answers;
};

const std::array<EndpointAnswers, 3>& endpoint_answers() {
  static const std::array<EndpointAnswers, 3> kAnswers = {{
      {"attest_challenge", {Answer::ok, Answer::too_many_outstanding_challenges, Answer::misdirected}},
      {"register",
       {Answer::ok, Answer::bad_json, Answer::missing_verifier, Answer::bad_verifier, Answer::already_registered,
        Answer::token_required, Answer::bad_token, Answer::token_not_attested, Answer::assertion_required,
        Answer::bad_challenge, Answer::assertion_rejected, Answer::stale_assertion, Answer::misdirected,
        Answer::state_unavailable}},
      {"delete",
       {Answer::ok, Answer::bad_json, Answer::not_established, Answer::signature_required, Answer::bad_challenge,
        Answer::bad_signature, Answer::misdirected, Answer::state_unavailable}},
  }};
  return kAnswers;
}

constexpr std::array<Answer, 9> kAttestAnswers = {Answer::ok,
                                                  Answer::bad_json,
                                                  Answer::attestation_disabled,
                                                  Answer::missing_fields,
                                                  Answer::bad_challenge,
                                                  Answer::attestation_rejected,
                                                  Answer::too_many_outstanding_tickets,
                                                  Answer::misdirected,
                                                  Answer::capacity};

constexpr std::array<CloseReason, 11> kAdmissionReasons = {
    CloseReason::bad_hello,          CloseReason::bad_proof,           CloseReason::rate_limited,
    CloseReason::signature_required, CloseReason::bad_signature,       CloseReason::ticket_required,
    CloseReason::bad_ticket,         CloseReason::mac_offline,         CloseReason::slot_occupied,
    CloseReason::pairing_cycle_cap,  CloseReason::daily_quota_exceeded};

}  // namespace

struct Metrics::Impl {
  Source source;
  prometheus::Registry registry;
  ProcessReader process;

  Counter& upgrades = counter(registry, "upgrades_total", "WebSocket upgrades accepted.");
  std::array<ByLabel, 2> rejects;     // http, upgrade
  std::array<ByLabel, 2> admissions;  // mac, phone
  ByLabel admission_rejects;
  CloseSeries closes{counters(registry, "closes_total", "WebSockets that ended, each once, by who ended it first.")};
  Counter& phone_no_mac =
      counter(registry, "phone_no_mac_total", "Phones refused because no mac was parked in their room.");
  Counter& quota_exceeded = counter(registry, "quota_exceeded_total", "Times a room used up its daily bytes.");
  Counter& keepalive_timeouts =
      counter(registry, "keepalive_timeouts_total", "Sockets dropped because they showed no sign of life.");
  Counter& stalls =
      counter(registry, "stalls_total", "Sockets closed because they acknowledged nothing while data waited.");
  Histogram& stall_seconds = histogram(registry, "stall_seconds", "How long destinations stood still.",
                                       {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60});
  Histogram& lifetime =
      histogram(registry, "socket_lifetime_seconds", "How long WebSockets lived.", {1, 5, 15, 60, 300, 1800, 14400});
  std::array<std::array<Counter*, 2>, 2> tls_handshakes{};  // [ok][resumed]
  Histogram& tls_seconds = histogram(registry, "tls_handshake_seconds", "How long TLS handshakes took.",
                                     {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10});
  Counter& adopted = counter(registry, "shard_map_adopted_total", "Shard maps adopted, the first one included.");
  ByLabel ignored;
  ByLabel fetch_errors;
  Counter& fetch_retries =
      counter(registry, "shard_map_fetch_retries_total", "Failed attempts of polls that succeeded all the same.");
  Counter& evicted =
      counter(registry, "evicted_rooms_total", "Rooms evicted because their bucket moved to another host.");
  ByLabel attest, attest_faults;
  std::map<std::string, ByLabel, std::less<>> endpoints;
  Counter& state_errors = counter(registry, "state_errors_total", "Failures of the soft-state store.");
  Histogram& loop_lag = histogram(registry, "loop_lag_seconds", "How late the event loop turned.",
                                  {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1});

  explicit Impl(Source s) : source(std::move(s)) {
    add_rejects();
    add_admissions();
    auto& tls = counters(registry, "tls_handshakes_total", "TLS handshakes that ended.");
    for (const bool ok : {false, true})
      for (const bool resumed : {false, true})
        tls_handshakes[ok][resumed] =
            &tls.Add({{"result", ok ? "ok" : "failed"}, {"resumed", resumed ? "true" : "false"}});
    auto& why = counters(registry, "shard_map_ignored_total", "Fetched shard maps that were not adopted.");
    for (const char* w : {"older", "equal_differs"}) ignored.add(why, "why", w);
    auto& errors =
        counters(registry, "shard_map_fetch_errors_total", "Polls of the shard map that failed after all attempts.");
    for (int i = 0; i < net::kFetchCauseCount; ++i)
      fetch_errors.add(errors, "cause", std::string(net::label(static_cast<net::FetchCause>(i))));
    add_endpoints();
  }

  void add_rejects() {
    auto& family = counters(registry, "rejects_total", "Requests that the entry gate refused.");
    for (const bool upgrade : {false, true})
      for (int i = 0; i < kRejectReasonCount; ++i) {
        const auto reason = static_cast<RejectReason>(i);
        if (reason == RejectReason::not_found || reason == RejectReason::method_not_allowed)
          continue;  // the label is bad_request's
        rejects[upgrade].add(family, "reason", std::string(label(reason)), {{"at", upgrade ? "upgrade" : "http"}});
      }
  }

  void add_admissions() {
    auto& family = counters(registry, "admissions_total", "Endpoints admitted, by role and by what let them in.");
    for (const Role role : {Role::mac, Role::phone})
      for (const Via via : {Via::signature, Via::ticket, Via::park, Via::open})
        admissions[role == Role::phone].add(family, "via", std::string(label(via)),
                                            {{"role", std::string(to_string(role))}});
    auto& refused = counters(registry, "admission_rejects_total", "Endpoints that were not admitted.");
    for (const auto reason : kAdmissionReasons) admission_rejects.add(refused, "reason", std::string(label(reason)));
    admission_rejects.add(refused, "reason", "other");
  }

  void add_endpoints() {
    auto& attested = counters(registry, "attest_total", "Answers of /attest.");
    for (const auto answer : kAttestAnswers) attest.add(attested, "result", std::string(protocol::label(answer)));
    attest.add(attested, "result", "other");
    auto& rejected =
        counters(registry, "attest_rejected_total", "Attestations rejected, by what the wire does not tell.");
    for (int i = 0; i < protocol::kAttestFaultCount; ++i)
      attest_faults.add(rejected, "why", std::string(label(static_cast<protocol::AttestFault>(i))));
    auto& family = counters(registry, "endpoint_total", "Answers of the other POST endpoints.");
    for (const auto& [path, answers] : endpoint_answers()) {
      for (const auto answer : answers)
        endpoints[path].add(family, "result", std::string(protocol::label(answer)), {{"path", path}});
      endpoints[path].add(family, "result", "other", {{"path", path}});
    }
  }

  // ---- one overload for each report that is counted
  void on(const observed::UpgradeAccepted&) { upgrades.Increment(); }
  void on(const observed::Rejected& o) { rejects[o.upgrade].count(label(o.reason)); }
  void on(const observed::Admitted& o) { admissions[o.role == Role::phone].count(label(o.via)); }
  void on(const observed::AdmissionRefused& o) {
    admission_rejects.count(label(o.reason));
    if (o.reason == CloseReason::mac_offline) phone_no_mac.Increment();
  }
  void on(const observed::SocketEnded& o) {
    closes.count(o);
    lifetime.Observe(to_seconds(o.lifetime));
  }
  void on(const observed::QuotaExceeded&) { quota_exceeded.Increment(); }
  void on(const observed::KeepaliveTimeout&) { keepalive_timeouts.Increment(); }
  void on(const observed::Stalled& o) {
    if (o.closed) stalls.Increment();
    stall_seconds.Observe(to_seconds(o.stood));
  }
  void on(const observed::TlsHandshake& o) {
    tls_handshakes[o.ok][o.resumed]->Increment();
    tls_seconds.Observe(to_seconds(o.took));
  }
  void on(const observed::Endpoint& o) {
    if (const auto found = endpoints.find(o.path); found != endpoints.end()) found->second.count(o.result);
  }
  void on(const observed::Attest& o) {
    attest.count(o.result);
    if (!o.detail.empty()) attest_faults.count(o.detail);
  }
  void on(const observed::MapAdopted&) { adopted.Increment(); }
  void on(const observed::MapIgnored& o) { ignored.count(o.older ? "older" : "equal_differs"); }
  void on(const observed::MapFetchFailed& o) { fetch_errors.count(o.cause); }
  void on(const observed::MapFetchRetried& o) { fetch_retries.Increment(o.retries); }
  void on(const observed::RoomEvicted&) { evicted.Increment(); }
  void on(const observed::StateError&) { state_errors.Increment(); }
  void on(const observed::LoopLag& o) { loop_lag.Observe(to_seconds(o.lag)); }

  template <class Uncounted>
  void on(const Uncounted&) {}
};

Metrics::Metrics(Source source) : impl_(std::make_unique<Impl>(std::move(source))) {}
Metrics::~Metrics() = default;

void Metrics::observe(const Observed& what) {
  std::visit([this](const auto& o) { impl_->on(o); }, what);
}

std::string Metrics::scrape() const {
  const Sample sample = impl_->source();
  auto families = impl_->registry.Collect();
  for (auto& f : sampled_families(sample, impl_->process.sample(sample.connections))) families.push_back(std::move(f));
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace tandem::metrics

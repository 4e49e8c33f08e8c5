#include "tandem/metrics/metrics.hpp"

#include "exposition.hpp"

#include <algorithm>
#include <chrono>
#include <sys/resource.h>

namespace tandem::metrics {
namespace {

using test::read_exposition;

Sample no_traffic() { return {}; }

double total(const Metrics& metrics, const std::string& name, const std::vector<std::string>& labels = {}) {
  double sum = 0;
  int seen = 0;
  const auto families = read_exposition(metrics.scrape());
  for (const auto& [family, f] : families)
    for (const auto& [key, value] : f.samples) {
      if (key != "tandem_" + name && !key.starts_with("tandem_" + name + "{")) continue;
      if (!std::all_of(labels.begin(), labels.end(),
                       [&sample = key](const auto& l) { return sample.find(l) != std::string::npos; }))
        continue;
      sum += value;
      ++seen;
    }
  EXPECT_GT(seen, 0) << name;
  return sum;
}

observed::SocketEnded ended(Initiator by, std::uint16_t code, CloseReason reason) {
  observed::SocketEnded e{};
  e.by = by;
  e.code = code;
  e.reason = reason;
  e.lifetime = seconds(2);
  return e;
}

TEST(Metrics, HoldsEveryFamilyWithHelpAndTypeBeforeAnythingHappened) {
  const Metrics metrics(no_traffic);
  const auto families = read_exposition(metrics.scrape());
  for (const char* name : {"rooms",
                           "sockets",
                           "relayed_bytes_total",
                           "relayed_messages_total",
                           "upgrades_total",
                           "rejects_total",
                           "admissions_total",
                           "admission_rejects_total",
                           "closes_total",
                           "phone_no_mac_total",
                           "quota_exceeded_total",
                           "keepalive_timeouts_total",
                           "stalls_total",
                           "stall_seconds",
                           "socket_lifetime_seconds",
                           "tls_handshakes_total",
                           "tls_handshake_seconds",
                           "shard_map_version",
                           "shard_map_age_seconds",
                           "shard_map_adopted_total",
                           "shard_map_ignored_total",
                           "shard_map_fetch_errors_total",
                           "shard_map_fetch_retries_total",
                           "owned_buckets",
                           "draining_buckets",
                           "draining_rooms",
                           "evicted_rooms_total",
                           "attest_total",
                           "attest_rejected_total",
                           "endpoint_total",
                           "state_errors_total",
                           "egress_bytes_month",
                           "shedding",
                           "loop_lag_seconds",
                           "build_info",
                           "certificate_expiry_timestamp_seconds"})
    EXPECT_TRUE(families.contains(std::string("tandem_") + name)) << name;
  for (const char* name : {"process_cpu_seconds_total", "process_start_time_seconds", "process_resident_memory_bytes",
                           "process_virtual_memory_bytes", "process_open_fds", "process_max_fds"})
    EXPECT_TRUE(families.contains(name)) << name;
}

TEST(Metrics, StartsEveryCounterAtZero) {
  const Metrics metrics(no_traffic);
  for (const auto& [name, family] : read_exposition(metrics.scrape())) {
    if (family.type == "gauge" || !name.starts_with("tandem_")) continue;
    for (const auto& [key, value] : family.samples) EXPECT_EQ(value, 0) << key;
  }
}

TEST(Metrics, HasFewSeriesAndTheSameOnesAfterAnythingHappened) {
  Metrics metrics(no_traffic);
  const auto count = [&] {
    std::size_t n = 0;
    for (const auto& [name, family] : read_exposition(metrics.scrape())) n += family.samples.size();
    return n;
  };
  const std::size_t before = count();
  EXPECT_LT(before, 400u);
  for (int code = 0; code < 6000; code += 7)
    for (const auto by : {Initiator::relay, Initiator::client, Initiator::network})
      for (int r = 0; r < kCloseReasonCount; ++r)
        if (code % 100 == 0 || r == static_cast<int>(CloseReason::client_close))
          metrics.observe(ended(by, static_cast<std::uint16_t>(code), static_cast<CloseReason>(r)));
  for (int r = 0; r < kCloseReasonCount; ++r)
    metrics.observe(observed::AdmissionRefused{RoomName{}, SocketId{1}, static_cast<CloseReason>(r)});
  for (int r = 0; r < kRejectReasonCount; ++r)
    for (const bool upgrade : {false, true}) metrics.observe(observed::Rejected{upgrade, static_cast<RejectReason>(r)});
  metrics.observe(observed::Attest{"something new", ""});
  metrics.observe(observed::Endpoint{"register", "something new"});
  metrics.observe(observed::Endpoint{"something new", "ok"});
  metrics.observe(observed::MapFetchFailed{"something new"});
  EXPECT_EQ(count(), before);
}

TEST(Metrics, TellsWhyAttestationsWereRejectedWithoutAnotherResult) {
  Metrics metrics(no_traffic);
  metrics.observe(observed::Attest{"attestation_rejected", "wrong_nonce"});
  metrics.observe(observed::Attest{"ok", ""});
  EXPECT_EQ(total(metrics, "attest_total", {"result=\"attestation_rejected\""}), 1);
  EXPECT_EQ(total(metrics, "attest_total"), 2);
  EXPECT_EQ(total(metrics, "attest_rejected_total", {"why=\"wrong_nonce\""}), 1);
  EXPECT_EQ(total(metrics, "attest_rejected_total"), 1);
}

TEST(Metrics, CountsEachEndOfAWebSocketOnceByWhoEndedIt) {
  Metrics metrics(no_traffic);
  metrics.observe(ended(Initiator::relay, 4421, CloseReason::reshard));
  metrics.observe(ended(Initiator::relay, 1008, CloseReason::daily_quota_exceeded));
  metrics.observe(ended(Initiator::client, 1000, CloseReason::client_close));
  metrics.observe(ended(Initiator::client, 4999, CloseReason::client_close));
  metrics.observe(ended(Initiator::client, 2345, CloseReason::client_close));
  metrics.observe(ended(Initiator::network, 1006, CloseReason::reset));
  EXPECT_EQ(total(metrics, "closes_total"), 6);
  EXPECT_EQ(total(metrics, "closes_total", {"by=\"relay\"", "code=\"4421\"", "reason=\"reshard\""}), 1);
  EXPECT_EQ(total(metrics, "closes_total", {"by=\"relay\"", "code=\"1008\"", "reason=\"daily_quota_exceeded\""}), 1);
  EXPECT_EQ(total(metrics, "closes_total", {"by=\"client\""}), 3);
  EXPECT_EQ(total(metrics, "closes_total", {"by=\"client\"", "code=\"4xxx\""}), 1);
  EXPECT_EQ(total(metrics, "closes_total", {"by=\"client\"", "code=\"other\"", "reason=\"client_close\""}), 1);
  EXPECT_EQ(total(metrics, "closes_total", {"by=\"network\"", "reason=\"reset\""}), 1);
  EXPECT_EQ(total(metrics, "socket_lifetime_seconds_count"), 6);
  EXPECT_EQ(total(metrics, "socket_lifetime_seconds_bucket", {"le=\"5\""}), 6);
  EXPECT_EQ(total(metrics, "socket_lifetime_seconds_bucket", {"le=\"1\""}), 0);
}

TEST(Metrics, HasEveryCloseOfTheWireInItsList) {
  const Metrics metrics(no_traffic);
  for (int r = 0; r < static_cast<int>(CloseReason::client_close); ++r) {
    const auto reason = static_cast<CloseReason>(r);
    EXPECT_EQ(total(metrics, "closes_total",
                    {"by=\"relay\"", "code=\"" + std::to_string(close_code(reason)) + "\"",
                     "reason=\"" + std::string(label(reason)) + "\""}),
              0);
  }
}

TEST(Metrics, TellsAdmissionsApartByRoleAndWayIn) {
  Metrics metrics(no_traffic);
  metrics.observe(observed::Admitted{RoomName{}, SocketId{1}, Role::mac, Via::park});
  metrics.observe(observed::Admitted{RoomName{}, SocketId{2}, Role::phone, Via::ticket});
  metrics.observe(observed::AdmissionRefused{RoomName{}, SocketId{3}, CloseReason::mac_offline});
  metrics.observe(observed::AdmissionRefused{RoomName{}, SocketId{3}, CloseReason::bad_signature});
  EXPECT_EQ(total(metrics, "admissions_total"), 2);
  EXPECT_EQ(total(metrics, "admissions_total", {"role=\"phone\"", "via=\"ticket\""}), 1);
  EXPECT_EQ(total(metrics, "admission_rejects_total"), 2);
  EXPECT_EQ(total(metrics, "phone_no_mac_total"), 1);
}

TEST(Metrics, CountsRejectsUnderTheLabelsOfTheContract) {
  Metrics metrics(no_traffic);
  metrics.observe(observed::Rejected{true, RejectReason::forbidden});
  metrics.observe(observed::Rejected{false, RejectReason::not_found});
  metrics.observe(observed::Rejected{false, RejectReason::method_not_allowed});
  EXPECT_EQ(total(metrics, "rejects_total"), 3);
  EXPECT_EQ(total(metrics, "rejects_total", {"at=\"upgrade\"", "reason=\"forbidden\""}), 1);
  EXPECT_EQ(total(metrics, "rejects_total", {"at=\"http\"", "reason=\"bad_request\""}), 2);
}

TEST(Metrics, CountsHandshakesStallsAndMaps) {
  Metrics metrics(no_traffic);
  metrics.observe(observed::TlsHandshake{true, true, milliseconds(3)});
  metrics.observe(observed::TlsHandshake{false, false, milliseconds(3)});
  metrics.observe(observed::Stalled{seconds(30), true});
  metrics.observe(observed::Stalled{seconds(4), false});
  metrics.observe(observed::MapAdopted{});
  metrics.observe(observed::MapIgnored{MapVersion{1}, true});
  metrics.observe(observed::MapFetchFailed{"parse"});
  metrics.observe(observed::MapFetchRetried{2});
  metrics.observe(observed::LoopLag{milliseconds(2)});
  EXPECT_EQ(total(metrics, "tls_handshakes_total", {"result=\"ok\"", "resumed=\"true\""}), 1);
  EXPECT_EQ(total(metrics, "tls_handshakes_total"), 2);
  EXPECT_EQ(total(metrics, "stalls_total"), 1);
  EXPECT_EQ(total(metrics, "stall_seconds_count"), 2);
  EXPECT_EQ(total(metrics, "shard_map_adopted_total"), 1);
  EXPECT_EQ(total(metrics, "shard_map_ignored_total", {"why=\"older\""}), 1);
  EXPECT_EQ(total(metrics, "shard_map_fetch_errors_total", {"cause=\"parse\""}), 1);
  EXPECT_EQ(total(metrics, "shard_map_fetch_retries_total"), 2);
  EXPECT_EQ(total(metrics, "loop_lag_seconds_count"), 1);
}

TEST(Metrics, ReadsGaugesFromTheSourceAtEachScrape) {
  Sample sample;
  const Metrics metrics([&] { return sample; });
  EXPECT_EQ(total(metrics, "rooms"), 0);
  sample.relay.rooms.spliced = 3;
  sample.relay.owned_buckets = 32768;
  sample.relay.version = MapVersion{(1ull << 53) - 1};
  sample.relayed_bytes.phone = 12345678901;
  sample.handshaking = 2;
  sample.map_age = milliseconds(1500);
  sample.certificate_expiry = WallTime{std::chrono::seconds(1790000000)};
  EXPECT_EQ(total(metrics, "rooms", {"state=\"spliced\""}), 3);
  EXPECT_EQ(total(metrics, "owned_buckets"), 32768);
  EXPECT_EQ(total(metrics, "shard_map_version"), 9007199254740991.0);
  EXPECT_EQ(total(metrics, "relayed_bytes_total", {"from=\"phone\""}), 12345678901.0);
  EXPECT_EQ(total(metrics, "sockets", {"state=\"handshake\""}), 2);
  EXPECT_EQ(total(metrics, "shard_map_age_seconds"), 1.5);
  EXPECT_EQ(total(metrics, "certificate_expiry_timestamp_seconds"), 1790000000.0);
}

TEST(Metrics, TellsTheProcess) {
  const Metrics metrics(no_traffic);
  const auto families = read_exposition(metrics.scrape());
  const auto value = [&](const char* name) { return families.at(name).samples.at(name); };
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GE(value("process_open_fds"), 3);
  EXPECT_LT(value("process_open_fds"), 200);
  EXPECT_GT(value("process_max_fds"), value("process_open_fds"));
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(value("process_start_time_seconds"), now, 120);
  EXPECT_GE(value("process_threads"), 1);
}

TEST(Metrics, TellsTheProcessWithoutADescriptorLeft) {
  const Metrics metrics(no_traffic);
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  none.rlim_cur = 0;
  ::setrlimit(RLIMIT_NOFILE, &none);
  const std::string text = metrics.scrape();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GT(read_exposition(text).at("process_resident_memory_bytes").samples.at("process_resident_memory_bytes"), 1e6);
}

TEST(Metrics, NamesNoRoom) {
  Metrics metrics(no_traffic);
  std::array<std::uint8_t, 32> digest{};
  digest.fill(0xab);
  const RoomName room(digest);
  metrics.observe(observed::UpgradeAccepted{room, SocketId{1}});
  metrics.observe(observed::Admitted{room, SocketId{1}, Role::mac, Via::open});
  metrics.observe(observed::QuotaExceeded{room});
  const std::string text = metrics.scrape();
  EXPECT_EQ(text.find(room.hex()), std::string::npos);
  EXPECT_EQ(text.find(room.tag()), std::string::npos);
}

}  // namespace
}  // namespace tandem::metrics

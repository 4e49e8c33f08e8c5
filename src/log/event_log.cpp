#include "tandem/log/event_log.hpp"

#include <cmath>
#include <string>

namespace tandem::log {
namespace {

namespace o = observed;

// Seconds with three digits: enough to read, short enough to scan.
double rounded(Duration d) { return std::round(to_seconds(d) * 1000) / 1000; }

// The text that travelled, where one did: what a client's own log shows.
std::string_view reason_of(CloseReason r) {
  const std::string_view text = close_text(r);
  return text.empty() ? label(r) : text;
}

class Writer {
 public:
  Writer(Log& log, bool again) : log_(log), again_(again) {}

  // ---- sockets and admission
  void operator()(const o::UpgradeAccepted& e) const {
    if (log_.enabled(Level::info)) log_.info("connected", {{"room", e.room.tag()}, {"socket", e.socket.value}});
  }
  void operator()(const o::Rejected& e) const {
    log_.debug("request rejected", {{"at", e.upgrade ? "upgrade" : "http"}, {"reason", label(e.reason)}});
  }
  void operator()(const o::HelloReceived& e) const {
    if (!log_.enabled(Level::debug)) return;
    log_.debug("hello", {{"room", e.room.tag()}, {"socket", e.socket.value}, {"role", to_string(e.role)}});
  }
  void operator()(const o::Admitted& e) const {
    if (!log_.enabled(Level::info)) return;
    log_.info("admitted",
              {{"room", e.room.tag()}, {"socket", e.socket.value}, {"role", to_string(e.role)}, {"via", label(e.via)}});
  }
  void operator()(const o::AdmissionRefused& e) const {
    if (!log_.enabled(Level::debug)) return;
    log_.debug("admission refused",
               {{"room", e.room.tag()}, {"socket", e.socket.value}, {"reason", reason_of(e.reason)}});
  }
  void operator()(const o::Displaced& e) const {
    if (!log_.enabled(Level::debug)) return;
    log_.debug("displaced", {{"room", e.room.tag()}, {"socket", e.socket.value}, {"role", to_string(e.role)}});
  }
  void operator()(const o::SocketEnded& e) const {
    if (!log_.enabled(Level::info)) return;
    const std::string_view role = e.has_role ? to_string(e.role) : "none";
    log_.info("closed", {{"room", e.room.tag()},
                         {"socket", e.socket.value},
                         {"role", role},
                         {"code", e.code},
                         {"reason", reason_of(e.reason)},
                         {"by", to_string(e.by)},
                         {"lifetime_seconds", rounded(e.lifetime)},
                         {"bytes_in", e.bytes_in},
                         {"bytes_out", e.bytes_out}});
  }
  void operator()(const o::QuotaExceeded& e) const { log_.info("daily quota exceeded", {{"room", e.room.tag()}}); }
  void operator()(const o::KeepaliveTimeout&) const { log_.debug("keepalive timeout"); }
  void operator()(const o::Stalled& e) const {
    if (e.closed) log_.debug("stalled", {{"stood_seconds", rounded(e.stood)}});
  }
  void operator()(const o::TlsHandshake& e) const {
    if (!e.ok) log_.debug("TLS handshake failed", {{"took_seconds", rounded(e.took)}});
  }
  // ---- endpoints
  void operator()(const o::Endpoint& e) const {
    log_.debug("endpoint answered", {{"path", e.path}, {"result", e.result}});
  }
  void operator()(const o::Attest& e) const {
    log_.debug("attestation answered", {{"result", e.result}, {"detail", e.detail}});
  }
  void operator()(const o::RoomEstablished& e) const { log_.info("room established", {{"room", e.room.tag()}}); }
  void operator()(const o::RoomDeleted& e) const { log_.info("room deleted", {{"room", e.room.tag()}}); }
  void operator()(const o::RoomExpired& e) const { log_.info("room expired", {{"room", e.room.tag()}}); }
  // ---- sharding
  void operator()(const o::MapAdopted& e) const {
    log_.info("map adopted", {{"version", e.version.value},
                              {"owned_buckets", e.owned},
                              {"acquired", e.acquired},
                              {"relinquished", e.relinquished},
                              {"rooms_draining", e.rooms_draining}});
  }
  void operator()(const o::MapIgnored& e) const {
    if (again_) {
      log_.debug("map ignored again", {{"version", e.version.value}});
    } else if (e.older) {
      log_.info("map ignored: older than the newest seen", {{"version", e.version.value}});
    } else {
      log_.warn("map ignored: another map was published under the same version", {{"version", e.version.value}});
    }
  }
  void operator()(const o::MapFetchFailed& e) const { log_.debug("map poll failed", {{"cause", e.cause}}); }
  void operator()(const o::MapFetchRetried& e) const {
    log_.debug("map poll needed retries", {{"retries", e.retries}});
  }
  void operator()(const o::MapFetchStreak& e) const {
    if (e.recovered) {
      log_.info("map fetch recovered", {{"polls", e.polls}, {"seconds", rounded(e.lasted)}});
    } else {
      log_.warn(e.polls <= 1 ? "map fetch failing" : "map fetch still failing",
                {{"cause", e.cause}, {"detail", e.detail}, {"polls", e.polls}, {"seconds", rounded(e.lasted)}});
    }
  }
  void operator()(const o::DrainStarted& e) const {
    log_.info("drain started", {{"buckets", e.buckets}, {"rooms", e.rooms}, {"expected_seconds", rounded(e.expected)}});
  }
  void operator()(const o::RoomEvicted& e) const {
    if (log_.enabled(Level::debug)) log_.debug("evicted", {{"room", e.room.tag()}, {"rooms_left", e.rooms_left}});
    // A long drain speaks now and then at info as well: every hundredth room.
    if (e.rooms_left != 0 && e.rooms_left % 100 == 0) log_.info("draining", {{"rooms_left", e.rooms_left}});
  }
  void operator()(const o::DrainEnded& e) const { log_.info("drain ended", {{"evicted", e.evicted}}); }
  // ---- the box
  void operator()(const o::SheddingChanged& e) const {
    if (e.on) {
      log_.warn("shedding: new rooms are refused", {{"memory_pressure_percent", e.pressure_percent}});
    } else {
      log_.info("shedding ended", {{"memory_pressure_percent", e.pressure_percent}});
    }
  }
  void operator()(const o::EgressAlert& e) const {
    const std::string text = "egress of this month reached " + std::to_string(e.percent) + " % of its budget";
    log_.warn(text, {{"used_bytes", e.used.value}, {"limit_bytes", e.limit.value}});
  }
  void operator()(const o::StateError& e) const { log_.error("state", {{"error", e.what}}); }
  void operator()(const o::DescriptorsExhausted& e) const {
    if (e.paused) {
      log_.error("out of file descriptors: new connections wait; raise LimitNOFILE");
    } else {
      log_.info("accepting connections again");
    }
  }
  void operator()(const o::LoopLag&) const {}  // a metric only

 private:
  Log& log_;
  bool again_;  // the map ignored last time was this one
};

}  // namespace

// An edge of the CDN that lags serves its old map at every poll: one line is enough, until something else comes.
void EventLog::observe(const Observed& what) {
  const auto* ignored = std::get_if<o::MapIgnored>(&what);
  const bool again = ignored != nullptr && ignored_ == ignored->version;
  if (ignored != nullptr)
    ignored_ = ignored->version;
  else if (std::holds_alternative<o::MapAdopted>(what))
    ignored_.reset();
  std::visit(Writer(log_, again), what);
}

}  // namespace tandem::log

#include "tandem/client/agent.hpp"

#include <algorithm>
#include <utility>

namespace tandem::client {

Agent::Agent(AgentSettings settings, RandomSource& random)
    : settings_(std::move(settings)), random_(random), resolver_(settings_.room.bucket(), settings_.memory) {}

Actions Agent::start(TimePoint now) {
  Actions out;
  backoff_.reset();
  fetching_ = fetch_again_ = need_map_ = false;
  pairing_ends_at_ = settings_.first_pairing ? now + kFirstPairingPatience : kNever;
  show(Standing::connecting, {}, out);
  go(now, false, out);
  return out;
}

Actions Agent::stop() {
  Actions out;
  if (!is_stopped()) abandon(out);
  phase_ = Phase::idle;
  return out;
}

// ---- the map

Actions Agent::map_fetched(std::shared_ptr<const shard::ShardMap> map, Duration max_age, TimePoint now) {
  Actions out;
  if (!fetching_ || is_stopped()) return out;
  const Resolver::Offer offer = resolver_.offer(std::move(map), max_age, now);
  refresh_at_ = offer == Resolver::Offer::older ? now + kRefreshInterval : resolver_.refresh_at();
  if (offer == Resolver::Offer::newer) out.push_back(action::Remember{resolver_.memory()});
  if (offer != Resolver::Offer::older) follow_map(now, out);
  fetch_over(now, out);
  return out;
}

Actions Agent::map_unchanged(Duration max_age, TimePoint now) {
  Actions out;
  if (!fetching_ || is_stopped()) return out;
  resolver_.still_current(max_age, now);
  refresh_at_ = std::max(resolver_.refresh_at(), now + kRefreshInterval);
  fetch_over(now, out);
  return out;
}

Actions Agent::map_failed(TimePoint now) {
  Actions out;
  if (!fetching_ || is_stopped()) return out;
  refresh_at_ = now + kRefreshInterval;
  fetch_over(now, out);
  return out;
}

void Agent::fetch(Actions& out) {
  if (!resolved()) return;
  fetch_again_ = fetching_;
  if (!fetching_) out.push_back(action::FetchMap{});
  fetching_ = true;
}

void Agent::fetch_over(TimePoint now, Actions& out) {
  fetching_ = false;
  if (std::exchange(fetch_again_, false)) return fetch(out);
  fetch_may_move_ = false;
  if (phase_ == Phase::fetching) go(now, true, out);
}

// Un-admitted endpoints move at once. An admitted one stays, but for a mac whose own attempt's map came late and whose
// peer has not been heard: it is parked where no phone will look.
void Agent::follow_map(TimePoint now, Actions& out) {
  const bool on_the_way = phase_ == Phase::connecting || phase_ == Phase::attesting;
  const bool parked_astray = phase_ == Phase::live && fetch_may_move_ && settings_.role == Role::mac && !heard_peer_;
  if (!on_the_way && !parked_astray) return;
  const std::string host = resolver_.host().value_or(host_);
  if (host == host_ || (host.empty() && parked_astray)) return;
  abandon(out);
  if (host.empty()) return retry(NoConnection{"the map names no host"}, now, out);
  connect(host, now, false, out);
}

// ---- attempts

void Agent::go(TimePoint now, bool map_was_asked, Actions& out) {
  if (!resolved()) return connect(settings_.relay, now, false, out);
  const std::optional<std::string> host = resolver_.host();
  // A map that has misled is asked for once more, however fresh: edges differ, and the next may have its successor.
  const bool doubtful = !resolver_.is_fresh(now) || (misled_by_ && misled_by_ == resolver_.memory().floor);
  const bool map_first = !map_was_asked && (!host || (need_map_ && doubtful));
  if (map_first) {
    phase_ = Phase::fetching;
    if (!fetching_) fetch(out);
    return;
  }
  need_map_ = false;
  if (!host) return retry(NoConnection{"no shard map"}, now, out);
  if (host->empty()) return retry(NoConnection{"the map names no host"}, now, out);
  connect(*host, now, !map_was_asked && !resolver_.is_fresh(now), out);
}

void Agent::connect(const std::string& host, TimePoint now, bool fetch_alongside, Actions& out) {
  (void)now;
  ++attempt_;
  host_ = host;
  phase_ = Phase::connecting;
  attested_ = heard_peer_ = false;
  out.push_back(action::Connect{attempt_, host_, {}});
  if (fetch_alongside && !fetching_) fetch(out);
  fetch_may_move_ = fetching_;
}

void Agent::abandon(Actions& out) {
  const bool has_socket = phase_ == Phase::connecting || phase_ == Phase::attesting || phase_ == Phase::live;
  if (has_socket) out.push_back(action::Abandon{attempt_});
  register_at_ = kNever;
}

bool Agent::current(Attempt attempt) const noexcept {
  return attempt == attempt_ && (phase_ == Phase::connecting || phase_ == Phase::attesting || phase_ == Phase::live);
}

Actions Agent::admitted(Attempt attempt, TimePoint now) {
  Actions out;
  if (!current(attempt) || phase_ != Phase::connecting) return out;
  phase_ = Phase::live;
  backoff_.reset();
  misled_by_.reset();
  register_backoff_.reset();
  register_at_ = pairing_ends_at_ = kNever;
  if (!resolver_.has_map()) refresh_at_ = now + kRefreshInterval;
  show(Standing::live, {}, out);
  if (settings_.role == Role::phone) out.push_back(action::Register{attempt_, host_, attested_});
  return out;
}

void Agent::heard_peer(Attempt attempt) {
  if (current(attempt)) heard_peer_ = true;
}

Actions Agent::ended(Attempt attempt, const Ending& ending, TimePoint now) {
  Actions out;
  if (!current(attempt) || phase_ == Phase::attesting) return out;
  const bool should_attest = phase_ == Phase::connecting && settings_.role == Role::phone && settings_.can_attest &&
                             !attested_ && is_ticket_required(ending);
  if (should_attest) {
    phase_ = Phase::attesting;
    out.push_back(action::Attest{attempt_, host_});
    return out;
  }
  retry(ending, now, out);
  return out;
}

Actions Agent::attested(Attempt attempt, std::string ticket, TimePoint) {
  Actions out;
  if (!current(attempt) || phase_ != Phase::attesting) return out;
  phase_ = Phase::connecting;
  attested_ = true;
  out.push_back(action::Connect{attempt_, host_, std::move(ticket)});
  return out;
}

Actions Agent::attest_failed(Attempt attempt, const Ending& ending, TimePoint now) {
  Actions out;
  if (current(attempt) && phase_ == Phase::attesting) retry(ending, now, out);
  return out;
}

Actions Agent::register_failed(Attempt attempt, const Ending& ending, TimePoint now) {
  Actions out;
  if (!current(attempt) || phase_ != Phase::live) return out;
  const Next next = react(ending).next;
  const bool misdirected = std::holds_alternative<Refused>(ending) && next == Next::refresh_map;
  if (misdirected) {  // one host per attempt: the socket goes where the POST must go
    abandon(out);
    retry(ending, now, out);
  } else if (next != Next::give_up && register_backoff_.failures() < kRegisterTries) {
    register_at_ = now + register_backoff_.next(random_);
  }
  return out;
}

void Agent::retry(const Ending& ending, TimePoint now, Actions& out) {
  const Reaction reaction = react(ending);
  register_at_ = kNever;
  if (reaction.next == Next::give_up) return finish(Standing::failed, describe(ending), out);
  if (reaction.next == Next::pair_again) return finish(Standing::pair_again, describe(ending), out);
  if (reaction.wait) backoff_.count();
  retry_at_ = now + (reaction.wait ? *reaction.wait : backoff_.next(random_));
  phase_ = Phase::waiting;
  fetch_may_move_ = false;
  if (reaction.next == Next::refresh_map && resolved()) {
    const bool misdirected = !std::holds_alternative<NoConnection>(ending);
    misled_by_ = misdirected ? resolver_.memory().floor : std::nullopt;
    resolver_.distrust();
    need_map_ = true;
    fetch(out);
  }
  if (backoff_.failures() >= kFailuresBeforeReconnecting) show(Standing::reconnecting, describe(ending), out);
}

void Agent::finish(Standing standing, std::string why, Actions& out) {
  phase_ = Phase::stopped;
  show(standing, std::move(why), out);
}

void Agent::show(Standing standing, std::string why, Actions& out) {
  const bool news = shown_ != standing || standing == Standing::connecting;
  shown_ = standing;
  if (news) out.push_back(action::Show{standing, std::move(why)});
}

// ---- time

Actions Agent::advance(TimePoint now) {
  Actions out;
  if (is_stopped()) return out;
  if (phase_ != Phase::live && now >= pairing_ends_at_) {
    abandon(out);
    finish(Standing::failed, "no pairing within 60 s", out);
    return out;
  }
  if (phase_ == Phase::waiting && now >= retry_at_) go(now, false, out);
  if (phase_ == Phase::live && resolved() && !fetching_ && now >= refresh_at_) fetch(out);
  if (phase_ == Phase::live && now >= register_at_) {
    register_at_ = kNever;
    out.push_back(action::Register{attempt_, host_, attested_});
  }
  return out;
}

TimePoint Agent::next_deadline() const {
  switch (phase_) {
    case Phase::idle:
    case Phase::stopped: return kNever;
    case Phase::waiting: return std::min(retry_at_, pairing_ends_at_);
    case Phase::fetching:
    case Phase::connecting:
    case Phase::attesting: return pairing_ends_at_;
    case Phase::live: return std::min(resolved() && !fetching_ ? refresh_at_ : kNever, register_at_);
  }
  return kNever;
}

}  // namespace tandem::client

#include "tandem/poll/plan.hpp"

#include <algorithm>
#include <cassert>

namespace tandem::poll {

namespace {

constexpr Duration kFirstBootPause = milliseconds(250), kLastBootPause = seconds(2);
constexpr Duration kTellAgainAfter = std::chrono::minutes(1);
// Between the attempts of a poll: an origin that refuses at once is not asked three times in the same millisecond.
constexpr Duration kLongestRetryPause = milliseconds(250);

}  // namespace

PollPlan::PollPlan(const PollSettings& settings, RandomSource& chance, TimePoint now)
    : settings_(settings),
      chance_(chance),
      next_(now),
      boot_deadline_(now + settings.boot_timeout),
      last_success_(now),
      boot_pause_(kFirstBootPause) {
  assert(settings.attempts > 0 && settings.interval > Duration::zero());
}

Duration PollPlan::jittered_interval() {
  return std::chrono::duration_cast<Duration>(settings_.interval * (0.9 + 0.2 * chance_.unit()));
}

std::optional<Duration> PollPlan::begin_attempt(TimePoint now) {
  assert(next_ != kNever && now >= next_);
  next_ = kNever;
  if (booting_ && now >= boot_deadline_) return std::nullopt;
  if (attempt_++ == 0) poll_began_ = now;
  return booting_ ? std::min(settings_.fetch_timeout, boot_deadline_ - now) : settings_.fetch_timeout;
}

PollPlan::Ended PollPlan::end_attempt(const std::optional<Fault>& fault, TimePoint now) {
  assert(next_ == kNever && attempt_ > 0);
  Ended ended;
  if (!fault) {
    succeed(now, ended);
  } else if (booting_) {
    fail(*fault, now, ended);
    next_ = std::min(now + boot_pause_, boot_deadline_);
    boot_pause_ = std::min(boot_pause_ * 2, kLastBootPause);
    return ended;
  } else if (fault->retryable && attempt_ < settings_.attempts) {
    next_ = now + std::min(settings_.interval / 20, kLongestRetryPause);
    return ended;
  } else {
    fail(*fault, now, ended);
  }
  next_ = std::max(now, poll_began_ + jittered_interval());
  return ended;
}

void PollPlan::fail(const Fault& fault, TimePoint now, Ended& ended) {
  attempt_ = 0;
  ended.failed = fault.cause;
  if (!streak_) {
    streak_.emplace();
    streak_began_ = poll_began_;
  }
  streak_->fault = fault;
  ++streak_->polls;
  streak_->lasted = now - streak_began_;
  if (streak_->polls > 1 && now - streak_told_ < kTellAgainAfter) return;
  streak_told_ = now;
  ended.streak =
      observed::MapFetchStreak{false, std::string(fault.cause_label()), fault.detail, streak_->polls, streak_->lasted};
}

void PollPlan::succeed(TimePoint now, Ended& ended) {
  ended.absorbed_retries = static_cast<std::uint32_t>(attempt_ - 1);
  attempt_ = 0;
  last_success_ = now;
  ended.booted = std::exchange(booting_, false);
  if (!streak_) return;
  streak_->lasted = now - streak_began_;
  ended.streak = observed::MapFetchStreak{true, std::string(streak_->fault.cause_label()), streak_->fault.detail,
                                          streak_->polls, streak_->lasted};
  over_ = std::exchange(streak_, std::nullopt);
}

std::optional<LastFault> PollPlan::failing(TimePoint now) const {
  auto last = streak_;
  if (last) last->lasted = now - streak_began_;
  return last;
}

std::optional<LastFault> PollPlan::recovered() const { return over_; }

}  // namespace tandem::poll

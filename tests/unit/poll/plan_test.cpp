#include "tandem/poll/plan.hpp"

#include <gtest/gtest.h>

namespace tandem::poll {
namespace {

using net::FetchCause;

Fault fault(FetchCause cause, bool retryable = true) {
  Fault f;
  f.cause = cause;
  f.detail = "as told";
  f.retryable = retryable;
  return f;
}

struct PlanBench {
  SeededRandom chance{7};
  TimePoint now{seconds(1000)};
  PollSettings settings;
  PollPlan plan{settings, chance, now};

  explicit PlanBench(PollSettings s = {}) : settings(s), plan(s, chance, now) {}

  void to_next() { now = std::max(now, plan.next_step()); }
  Duration begin() {
    to_next();
    const auto timeout = plan.begin_attempt(now);
    EXPECT_TRUE(timeout.has_value());
    return timeout.value_or(Duration::zero());
  }
  PollPlan::Ended attempt(std::optional<Fault> f, Duration took = milliseconds(10)) {
    begin();
    now += took;
    return plan.end_attempt(f, now);
  }
  void boot() { EXPECT_TRUE(attempt(std::nullopt).booted); }
  // A whole poll that fails after all its attempts.
  PollPlan::Ended failing_poll(FetchCause cause = FetchCause::http_5xx) {
    PollPlan::Ended ended;
    for (int i = 0; i < settings.attempts; ++i) ended = attempt(fault(cause));
    return ended;
  }
};

TEST(PollPlan, FetchesAtOnceAtBoot) {
  PlanBench b;
  EXPECT_EQ(b.plan.next_step(), b.now);
  EXPECT_EQ(b.begin(), seconds(3));
  EXPECT_EQ(b.plan.next_step(), kNever);
}

TEST(PollPlan, WaitsAQuarterSecondDoublingToTwoAtBootWhateverTheFault) {
  PlanBench b;
  for (const auto& [f, want] : {std::pair{fault(FetchCause::http_4xx, false), 250},
                                {fault(FetchCause::parse, false), 500},
                                {fault(FetchCause::dns), 1000},
                                {fault(FetchCause::connect), 2000},
                                {fault(FetchCause::tls), 2000}}) {
    const auto ended = b.attempt(f);
    EXPECT_EQ(ended.failed, f.cause);
    EXPECT_EQ(b.plan.next_step() - b.now, milliseconds(want));
  }
}

TEST(PollPlan, GivesUpAtTheBootTimeoutNotBefore) {
  PollSettings s;
  s.boot_timeout = seconds(4);
  PlanBench b(s);
  const TimePoint begun = b.now;
  for (int i = 0; i < 100; ++i) {
    b.to_next();
    const auto timeout = b.plan.begin_attempt(b.now);
    if (!timeout) {
      EXPECT_EQ(b.now, begun + seconds(4));
      EXPECT_EQ(b.plan.next_step(), kNever);
      return;
    }
    EXPECT_LT(b.now, begun + seconds(4));
    b.now += milliseconds(100);
    EXPECT_FALSE(b.plan.end_attempt(fault(FetchCause::connect), b.now).booted);
  }
  FAIL() << "never gave up";
}

TEST(PollPlan, ClipsTheLastBootAttemptToTheTimeThatIsLeft) {
  PollSettings s;
  s.boot_timeout = seconds(1);
  PlanBench b(s);
  EXPECT_EQ(b.begin(), seconds(1));
}

TEST(PollPlan, PollsEachIntervalWithinTenPercentFromBeginToBegin) {
  PlanBench b;
  TimePoint begun = b.now;
  b.boot();
  Duration least = seconds(99), most{};
  for (int i = 0; i < 500; ++i) {
    const Duration gap = b.plan.next_step() - begun;
    least = std::min(least, gap);
    most = std::max(most, gap);
    begun = b.plan.next_step();
    b.attempt(std::nullopt, milliseconds(700));
  }
  EXPECT_GE(least, seconds(9));
  EXPECT_LE(most, seconds(11));
  EXPECT_LT(least, milliseconds(9200));
  EXPECT_GT(most, milliseconds(10800));
}

TEST(PollPlan, NeverOverlapsAPollThatOutlastsTheInterval) {
  PollSettings s;
  s.interval = seconds(5);
  PlanBench b(s);
  b.boot();
  b.attempt(fault(FetchCause::timeout), seconds(3));
  b.attempt(fault(FetchCause::timeout), seconds(3));
  EXPECT_EQ(b.attempt(fault(FetchCause::timeout), seconds(3)).failed, FetchCause::timeout);
  EXPECT_EQ(b.plan.next_step(), b.now);
}

TEST(PollPlan, CountsAPollOnceAfterAllItsAttempts) {
  PlanBench b;
  b.boot();
  EXPECT_FALSE(b.attempt(fault(FetchCause::timeout)).failed);
  EXPECT_FALSE(b.attempt(fault(FetchCause::connect)).failed);
  const auto ended = b.attempt(fault(FetchCause::http_5xx));
  EXPECT_EQ(ended.failed, FetchCause::http_5xx);
  EXPECT_EQ(ended.absorbed_retries, 0u);
}

TEST(PollPlan, CountsAbsorbedRetriesApart) {
  PlanBench b;
  b.boot();
  b.attempt(fault(FetchCause::timeout));
  b.attempt(fault(FetchCause::timeout));
  const auto ended = b.attempt(std::nullopt);
  EXPECT_EQ(ended.absorbed_retries, 2u);
  EXPECT_FALSE(ended.failed);
  EXPECT_FALSE(ended.streak) << "a poll that succeeded was no streak";
  EXPECT_EQ(b.plan.age(b.now), Duration::zero());
}

TEST(PollPlan, DoesNotRetryWhatCannotHeal) {
  PlanBench b;
  b.boot();
  EXPECT_EQ(b.attempt(fault(FetchCause::http_4xx, false)).failed, FetchCause::http_4xx);
  EXPECT_EQ(b.attempt(fault(FetchCause::parse, false)).failed, FetchCause::parse);
}

TEST(PollPlan, TellsAStreakAtItsStartOnceAMinuteAndAtItsEnd) {
  PlanBench b;
  b.boot();
  b.to_next();
  const TimePoint begun = b.now;
  auto ended = b.failing_poll();
  ASSERT_TRUE(ended.streak);
  EXPECT_FALSE(ended.streak->recovered);
  EXPECT_EQ(ended.streak->cause, "http_5xx");
  EXPECT_EQ(ended.streak->polls, 1u);
  TimePoint told = b.now;
  std::uint32_t polls = 1;
  int lines = 0;
  while (b.now - begun < std::chrono::minutes(5)) {
    ended = b.failing_poll();
    ++polls;
    if (!ended.streak) {
      EXPECT_LT(b.now - told, std::chrono::minutes(1));
      continue;
    }
    ++lines;
    EXPECT_GE(b.now - told, std::chrono::minutes(1));
    EXPECT_EQ(ended.streak->polls, polls);
    told = b.now;
  }
  EXPECT_TRUE(lines == 4 || lines == 5) << lines;
  ended = b.attempt(std::nullopt);
  ASSERT_TRUE(ended.streak);
  EXPECT_TRUE(ended.streak->recovered);
  EXPECT_EQ(ended.streak->polls, polls);
  EXPECT_EQ(ended.streak->lasted, b.now - begun);
  EXPECT_FALSE(b.attempt(std::nullopt).streak);
}

TEST(PollPlan, HoldsTheLatestFaultOfAStreakAndRemembersItAfter) {
  PlanBench b;
  EXPECT_FALSE(b.plan.failing(b.now));
  b.boot();
  b.failing_poll(FetchCause::connect);
  Fault refused = fault(FetchCause::parse, false);
  refused.kind = "gap_or_overlap";
  refused.value = "101";
  b.attempt(refused);
  b.now += seconds(5);
  const auto last = b.plan.failing(b.now);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->fault.kind, "gap_or_overlap");
  EXPECT_EQ(last->fault.value, "101");
  EXPECT_EQ(last->polls, 2u);
  EXPECT_GT(last->lasted, seconds(5));
  b.attempt(std::nullopt);
  EXPECT_FALSE(b.plan.failing(b.now));
  ASSERT_TRUE(b.plan.recovered());
  EXPECT_EQ(b.plan.recovered()->fault.kind, "gap_or_overlap");
}

TEST(PollPlan, AgesFromTheLastSuccess) {
  PlanBench b;
  b.boot();
  const TimePoint good = b.now;
  b.failing_poll();
  EXPECT_EQ(b.plan.age(b.now), b.now - good);
}

TEST(PollPlan, CountsNoFetchErrorForAMapOlderThanTheFloor) {
  PlanBench b;
  Fault older;
  older.detail = "version 9 is older than 10";
  const auto ended = b.attempt(older);
  EXPECT_FALSE(ended.failed);
  ASSERT_TRUE(ended.streak);
  EXPECT_EQ(ended.streak->cause, "older");
  EXPECT_EQ(b.plan.next_step() - b.now, milliseconds(250));
}

}  // namespace
}  // namespace tandem::poll

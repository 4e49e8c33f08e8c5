#include "tandem/poll/poller.hpp"

#include "unit/support/scripted_origin.hpp"

#include <chrono>
#include <map>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

namespace tandem::poll {
namespace {

using relay::MapOutcome;
using test::http_answer;
using test::OriginPeer;
using test::ScriptedOrigin;
using test::TestCertificate;

std::string map_text(int version, const std::string& host = "relay1.test") {
  return R"({"version":)" + std::to_string(version) + R"(,"ranges":[{"low":0,"high":65535,"host":")" + host + R"("}]})";
}

ScriptedOrigin::Script serves(std::string answer) {
  return [answer = std::move(answer)](const std::string&, OriginPeer& peer) { peer.send(answer); };
}

struct Counting : Observer {
  std::map<std::string, int> failed;
  std::uint32_t retried = 0;
  std::vector<observed::MapFetchStreak> streaks;
  void observe(const Observed& what) override {
    if (const auto* f = std::get_if<observed::MapFetchFailed>(&what)) ++failed[std::string(f->cause)];
    if (const auto* r = std::get_if<observed::MapFetchRetried>(&what)) retried += r->retries;
    if (const auto* s = std::get_if<observed::MapFetchStreak>(&what)) streaks.push_back(*s);
  }
};

// A poller on a real loop, with the relay's rule for versions.
struct PollerBench {
  boost::asio::io_context loop;
  SeededRandom chance{1};
  Counting observer;
  PollSettings settings;
  std::optional<std::uint64_t> held;
  std::uint64_t floor = 0;
  int offered = 0;
  std::optional<std::optional<std::string>> boot;
  std::unique_ptr<Poller> poller;

  PollerBench() {
    settings.interval = milliseconds(60);
    settings.fetch_timeout = milliseconds(300);
    settings.boot_timeout = seconds(5);
  }
  void start(const std::string& url, const std::string& ca = {}) {
    poller = std::make_unique<Poller>(loop, MapSource{url, ca}, settings, chance, observer, [this](auto map) {
      ++offered;
      const std::uint64_t v = map->version().value;
      Offered o;
      o.newest_seen = MapVersion{floor};
      if (v < floor)
        o.kind = MapOutcome::Kind::older;
      else if (held == v)
        o.kind = MapOutcome::Kind::same;
      else {
        o.kind = MapOutcome::Kind::adopted;
        held = floor = v;
      }
      return o;
    });
    poller->start([this](const std::optional<std::string>& fault) { boot = fault; });
  }
  template <class Condition>
  bool until(Condition condition, Duration limit = seconds(10)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition() && std::chrono::steady_clock::now() < end) loop.run_one_for(milliseconds(20));
    return condition();
  }
};

TEST(Poller, BootsOverHttpsAndGoesOnPolling) {
  const TestCertificate certificate("DNS:localhost,IP:127.0.0.1");
  ScriptedOrigin origin(serves(http_answer(map_text(1))), &certificate);
  PollerBench b;
  b.start(origin.url("localhost"), certificate.path());
  ASSERT_TRUE(b.until([&] { return b.boot.has_value(); }));
  EXPECT_FALSE(*b.boot) << **b.boot;
  EXPECT_EQ(b.held, 1u);
  origin.script(serves(http_answer(map_text(2))));
  EXPECT_TRUE(b.until([&] { return b.held == 2u; }));
  EXPECT_TRUE(b.observer.failed.empty());
  EXPECT_EQ(b.poller->map()->version().value, 2u);
}

TEST(Poller, FetchesEachTimeOnAFreshConnection) {
  ScriptedOrigin origin(serves(http_answer(map_text(1))));
  PollerBench b;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return origin.connections() >= 4; }));
  EXPECT_NEAR(static_cast<double>(origin.heads().size()), origin.connections(), 1);
}

TEST(Poller, TriesAgainAtBootOnAnyFailure) {
  ScriptedOrigin origin(serves(http_answer("", "404 Not Found")));
  PollerBench b;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return b.observer.failed["http_4xx"] == 2; }));
  EXPECT_FALSE(b.boot);
  origin.script(serves(http_answer(map_text(3))));
  ASSERT_TRUE(b.until([&] { return b.boot.has_value(); }));
  EXPECT_FALSE(*b.boot);
  ASSERT_EQ(b.observer.streaks.size(), 2u);
  EXPECT_TRUE(b.observer.streaks[1].recovered);
}

TEST(Poller, NamesTheCauseWhenTheBootTimeIsOver) {
  ScriptedOrigin origin(serves(http_answer(map_text(9))));
  PollerBench b;
  b.settings.boot_timeout = milliseconds(700);
  b.floor = 10;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return b.boot.has_value(); }));
  ASSERT_TRUE(*b.boot);
  EXPECT_NE((**b.boot).find("version 9"), std::string::npos) << **b.boot;
  EXPECT_NE((**b.boot).find("10"), std::string::npos) << **b.boot;
  EXPECT_TRUE(b.observer.failed.empty());
}

TEST(Poller, GivesUpInTimeWhenTheOriginHangs) {
  ScriptedOrigin origin([](const std::string&, OriginPeer& peer) {
    char c = 0;
    ::recv(peer.fd(), &c, 1, 0);
  });
  PollerBench b;
  b.settings.boot_timeout = milliseconds(400);
  b.settings.fetch_timeout = seconds(60);
  b.start(origin.url());
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_TRUE(b.until([&] { return b.boot.has_value(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(2));
  EXPECT_TRUE((**b.boot).starts_with("timeout: ")) << **b.boot;
}

TEST(Poller, SendsTheEtagOfAnAcceptedMapAndTakes304AsSuccess) {
  ScriptedOrigin origin([](const std::string& head, OriginPeer& peer) {
    if (head.find("If-None-Match: \"v1\"\r\n") != std::string::npos)
      peer.send("HTTP/1.1 304 Not Modified\r\n\r\n");
    else
      peer.send(http_answer(map_text(1), "200 OK", "ETag: \"v1\"\r\n"));
  });
  PollerBench b;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return origin.heads().size() >= 4; }));
  EXPECT_EQ(b.offered, 1);
  EXPECT_TRUE(b.observer.failed.empty());
  EXPECT_LT(b.poller->age(), milliseconds(500));
}

TEST(Poller, NeverSendsTheEtagOfARefusedMap) {
  ScriptedOrigin origin(serves(http_answer(map_text(1), "200 OK", "ETag: \"good\"\r\n")));
  PollerBench b;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return b.held == 1u; }));
  origin.script(serves(http_answer(R"({"version":2,"ranges":[]})", "200 OK", "ETag: \"bad\"\r\n")));
  ASSERT_TRUE(b.until([&] { return b.observer.failed["parse"] >= 3; }));
  for (const auto& head : origin.heads()) EXPECT_EQ(head.find("\"bad\""), std::string::npos);
  EXPECT_NE(origin.heads().back().find("If-None-Match: \"good\""), std::string::npos);
  EXPECT_EQ(b.held, 1u);
  const auto failing = b.poller->failing();
  ASSERT_TRUE(failing);
  EXPECT_EQ(failing->fault.kind, "empty_ranges");
}

TEST(Poller, CountsA304NobodyAskedFor) {
  ScriptedOrigin origin(serves(http_answer(map_text(1))));
  PollerBench b;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return b.held == 1u; }));
  origin.script(serves("HTTP/1.1 304 Not Modified\r\n\r\n"));
  EXPECT_TRUE(b.until([&] { return b.observer.failed["http_other"] >= 2; }));
}

TEST(Poller, RetriesWithinAPollAndCountsThemApart) {
  int n = 0;
  ScriptedOrigin origin(serves(http_answer(map_text(1))));
  PollerBench b;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return b.held == 1u; }));
  origin.script([&n](const std::string&, OriginPeer& peer) {
    peer.send(++n % 3 ? http_answer("", "503 Busy") : http_answer(map_text(1)));
  });
  ASSERT_TRUE(b.until([&] { return b.observer.retried >= 4; }));
  EXPECT_TRUE(b.observer.failed.empty());
}

TEST(Poller, NamesAMapThatIsTooLarge) {
  ScriptedOrigin origin(serves(http_answer(map_text(1))));
  PollerBench b;
  b.settings.fetch_timeout = seconds(3);
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return b.held == 1u; }));
  origin.script(serves(http_answer(map_text(2) + std::string(shard::kMaxMapBytes, ' '))));
  ASSERT_TRUE(b.until([&] { return b.observer.failed["parse"] >= 1; }));
  EXPECT_EQ(b.poller->failing()->fault.kind, "too_large");
  EXPECT_EQ(b.poller->failing()->fault.value, std::to_string(shard::kMaxMapBytes + map_text(2).size()));
  EXPECT_EQ(b.held, 1u);
}

TEST(Poller, OffersNothingAfterStop) {
  ScriptedOrigin origin(serves(http_answer(map_text(1))));
  PollerBench b;
  b.start(origin.url());
  ASSERT_TRUE(b.until([&] { return b.held == 1u; }));
  b.poller->stop();
  const int before = b.offered;
  b.loop.run_for(milliseconds(300));
  EXPECT_EQ(b.offered, before);
}

}  // namespace
}  // namespace tandem::poll

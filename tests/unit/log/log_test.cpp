#include "tandem/log/log.hpp"

#include "tandem/log/event_log.hpp"

#include <csignal>
#include <fcntl.h>
#include <sstream>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tandem::log {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class Pipe {
 public:
  Pipe() {
    std::signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(::pipe(fds_), 0);
    ::fcntl(fds_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close_reader();
    ::close(fds_[1]);
  }
  [[nodiscard]] int writer() const { return fds_[1]; }
  void close_reader() {
    if (fds_[0] >= 0) ::close(fds_[0]);
    fds_[0] = -1;
  }
  std::string read() {
    std::string out(1 << 20, '\0');
    std::size_t n = 0;
    for (ssize_t got; (got = ::read(fds_[0], out.data() + n, out.size() - n)) > 0;) n += static_cast<std::size_t>(got);
    out.resize(n);
    return out;
  }
  std::vector<std::string> lines() {
    std::vector<std::string> out;
    std::istringstream in(read());
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }

 private:
  int fds_[2] = {-1, -1};
};

TEST(Log, TextIsOneLineWithTheLevelAndTheFields) {
  Pipe pipe;
  Log log({Level::info, Format::text, pipe.writer()});
  log.info("map adopted", {{"version", 8}, {"owner", "relay 1"}, {"ok", true}, {"seconds", 1.5}, {"empty", ""}});
  log.warn("a\nb", {{"x", "c\r\nd\x01"}});
  EXPECT_EQ(pipe.read(),
            "info: map adopted version=8 owner=\"relay 1\" ok=true seconds=1.5 empty=\"\"\n"
            "warn: a\\nb x=c\\r\\nd\\u0001\n");
}

TEST(Log, EveryJsonLineIsAnObjectWithLevelMessageAndTime) {
  Pipe pipe;
  Log log({Level::debug, Format::json, pipe.writer()});
  constexpr char kNasty[] = "quote\" back\\ nul\0 bell\a bad\xff\xc3( \xed\xa0\x80 good\xc3\xa9";
  const std::string nasty(kNasty, sizeof kNasty - 1);
  log.error(nasty, {{"text", nasty}, {"n", -3}, {"d", 0.25}, {"b", false}, {"inf", 1.0 / 0.0}});
  log.debug(std::string(100000, 'x'), {{"long", std::string(100000, '"')}, {"more", std::string(5000, 'y')}});
  const auto lines = pipe.lines();
  ASSERT_EQ(lines.size(), 2u);
  const json first = json::parse(lines[0]);
  EXPECT_EQ(first["level"], "error");
  EXPECT_THAT(first["message"].get<std::string>(), HasSubstr("good\xc3\xa9"));
  EXPECT_EQ(first["n"], -3);
  EXPECT_EQ(first["b"], false);
  EXPECT_TRUE(first["inf"].is_null());
  EXPECT_EQ(first["time"].get<std::string>().size(), 24u);
  EXPECT_EQ(json::parse(lines[1])["level"], "debug");
  EXPECT_LT(lines[1].size(), 4096u);
}

TEST(Log, KeepsBelowItsLevelSilentAndTogglesDebug) {
  Pipe pipe;
  Log log({Level::warn, Format::text, pipe.writer()});
  log.info("no");
  log.toggle_debug();
  log.debug("yes");
  log.configure(Level::error, Format::text);  // a reload does not take the toggled debug away
  log.debug("still");
  log.toggle_debug();
  log.warn("not any more");
  log.error("last");
  EXPECT_EQ(log.level(), Level::error);
  const std::string text = pipe.read();
  EXPECT_THAT(text, Not(HasSubstr("no\n")));
  EXPECT_THAT(text, HasSubstr("debug: yes\n"));
  EXPECT_THAT(text, HasSubstr("debug: still\n"));
  EXPECT_THAT(text, Not(HasSubstr("not any more")));
  EXPECT_THAT(text, HasSubstr("error: last\n"));
}

TEST(Log, AFullPipeLosesLinesInsteadOfWaitingAndSaysSoLater) {
  Pipe pipe;
  Log log({Level::info, Format::text, pipe.writer()});
  for (int i = 0; i < 3000; ++i) log.info("line", {{"n", i}, {"padding", std::string(100, 'p')}});
  EXPECT_GT(log.dropped(), 0u);
  const std::uint64_t lost = log.dropped();
  pipe.read();
  log.info("after");
  const auto lines = pipe.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "info: after");
  EXPECT_EQ(lines[1], "warn: log lines lost: nobody read them lines=" + std::to_string(lost));
}

TEST(Log, AClosedPipeIsSurvived) {
  Pipe pipe;
  Log log({Level::info, Format::json, pipe.writer()});
  pipe.close_reader();
  for (int i = 0; i < 10; ++i) log.info("nobody reads");
  EXPECT_EQ(log.dropped(), 10u);
}

TEST(Log, AFullStreamSocketKeepsLinesWhole) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  Log log({Level::info, Format::json, fds[1]});
  const auto drain = [&] {
    std::string out, part(65536, '\0');
    for (ssize_t n; (n = ::read(fds[0], part.data(), part.size())) > 0;)
      out.append(part, 0, static_cast<std::size_t>(n));
    return out;
  };
  for (int i = 0; i < 5000; ++i) log.info("line", {{"n", i}});
  EXPECT_GT(log.dropped(), 0u);
  std::istringstream in(drain());
  std::size_t whole = 0;
  for (std::string line; std::getline(in, line);) whole += json::accept(line) ? 1u : 0u;
  EXPECT_EQ(whole + log.dropped(), 5000u);
  log.info("after");
  EXPECT_THAT(drain(), HasSubstr("\"message\":\"after\""));
  ::close(fds[0]);
  ::close(fds[1]);
}

TEST(Log, LinesOfTwoThreadsDoNotMix) {
  Pipe pipe;
  Log log({Level::info, Format::json, pipe.writer()});
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) log.info("other");
  });
  for (int i = 0; i < 100; ++i) log.info("this");
  other.join();
  const auto lines = pipe.lines();
  EXPECT_EQ(lines.size(), 200u);
  for (const std::string& line : lines) EXPECT_TRUE(json::accept(line)) << line;
}

class Events : public testing::Test {
 protected:
  std::string text(const Observed& what, Level level = Level::debug) { return texts({what}, level); }
  std::string texts(const std::vector<Observed>& happening, Level level) {
    Pipe pipe;
    Log log({level, Format::text, pipe.writer()});
    EventLog events(log);
    for (const Observed& what : happening) events.observe(what);
    return pipe.read();
  }
  const RoomName room_{{1, 2, 3}};
};

TEST_F(Events, ACloseLineHoldsTagRoleCodeReasonAndInitiator) {
  const observed::SocketEnded ended{
      room_, {7}, true, Role::phone, Initiator::relay, 1001, CloseReason::peer_gone, milliseconds(3210), 10, 20};
  EXPECT_EQ(text(ended, Level::info), "info: closed room=" + room_.tag() +
                                          " socket=7 role=phone code=1001 reason=\"peer gone\" by=relay "
                                          "lifetime_seconds=3.21 bytes_in=10 bytes_out=20\n");
}

TEST_F(Events, NamesARoomByItsTagAlone) {
  const std::vector<Observed> all = {observed::UpgradeAccepted{room_, {1}},
                                     observed::HelloReceived{room_, {1}, Role::mac},
                                     observed::Admitted{room_, {1}, Role::mac, Via::park},
                                     observed::AdmissionRefused{room_, {1}, CloseReason::bad_ticket},
                                     observed::Displaced{room_, {1}, Role::mac},
                                     observed::QuotaExceeded{room_},
                                     observed::RoomEstablished{room_},
                                     observed::RoomDeleted{room_},
                                     observed::RoomExpired{room_},
                                     observed::RoomEvicted{room_, 3}};
  for (const Observed& what : all) {
    const std::string line = text(what);
    EXPECT_THAT(line, HasSubstr("room=" + room_.tag()));
    EXPECT_THAT(line, Not(HasSubstr(room_.hex())));
  }
}

TEST_F(Events, AMapThatIsIgnoredAtEveryPollIsSaidOnce) {
  const auto ignored = [](std::uint64_t version) { return observed::MapIgnored{{version}, true}; };
  const observed::MapAdopted adopted{{9}, 100, 50, 2, 1, false};
  const std::string lines = texts({ignored(7), ignored(7), ignored(6), ignored(6), adopted, ignored(6)}, Level::info);
  EXPECT_THAT(lines, MatchesRegex("[^\n]*older[^\n]*version=7\n[^\n]*older[^\n]*version=6\n[^\n]*adopted[^\n]*\n"
                                  "[^\n]*older[^\n]*version=6\n"));
}

TEST_F(Events, TheMapsLinesSayAdoptedFailingAndRecovered) {
  EXPECT_THAT(text(observed::MapAdopted{{8}, 100, 50, 2, 1, false}, Level::info),
              HasSubstr("map adopted version=8 owned_buckets=100"));
  EXPECT_THAT(text(observed::MapFetchStreak{false, "timeout", "no answer", 1, seconds(0)}, Level::info),
              HasSubstr("warn: map fetch failing cause=timeout"));
  EXPECT_THAT(text(observed::MapFetchStreak{false, "timeout", "", 7, seconds(61)}, Level::info),
              HasSubstr("still failing"));
  EXPECT_THAT(text(observed::MapFetchStreak{true, "", "", 7, seconds(70)}, Level::info),
              HasSubstr("map fetch recovered polls=7 seconds=70"));
}

TEST_F(Events, TheEgressAlertSaysEgressAndThePercentage) {
  EXPECT_THAT(text(observed::EgressAlert{80, {8}, {10}}, Level::warn),
              HasSubstr("egress of this month reached 80 % of"));
}

TEST_F(Events, WhatARefusedStrangerCausesIsDebugOnly) {
  const std::vector<Observed> noise = {observed::Rejected{true, RejectReason::forbidden},
                                       observed::TlsHandshake{false, false, seconds(1)},
                                       observed::AdmissionRefused{room_, {1}, CloseReason::bad_proof},
                                       observed::Endpoint{"register", "bad_token"},
                                       observed::Attest{"rejected", "chain"},
                                       observed::KeepaliveTimeout{},
                                       observed::MapFetchFailed{"dns"}};
  for (const Observed& what : noise) {
    EXPECT_EQ(text(what, Level::info), "");
    EXPECT_NE(text(what, Level::debug), "");
  }
}

}  // namespace
}  // namespace tandem::log

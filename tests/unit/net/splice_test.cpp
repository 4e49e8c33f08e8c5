// The splice over real TLS: what one endpoint sends reaches the other whole, in order, and nothing else does.
#include "unit/net/wire.hpp"

#include <gtest/gtest.h>
#include <openssl/rand.h>

namespace tandem::net::wire {
namespace {

using std::chrono::milliseconds;

std::string noise(std::size_t size) {
  std::string out(size, '\0');
  RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(size));
  return out;
}

TEST(Splice, CarriesEverySizeBothWays) {
  for (const bool tls : {true, false}) {
    Options options;
    options.tls = tls;
    TestServer server(options);
    Pair p = pair(server, tls);
    for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 2, 125, 126, 127, 4096, 16379, 16380, 16381,
                                                                     16384, 65535, 65536, 262144}) {
      const std::string payload = noise(size);
      p.mac.send_frame(2, payload);
      EXPECT_EQ(p.phone.message(), (Frame{2, true, payload})) << size;
      p.phone.send_frame(1, std::string(size, 't'));
      EXPECT_EQ(p.mac.message(), (Frame{1, true, std::string(size, 't')})) << size;
    }
  }
}

TEST(Splice, KeepsManyMessagesInOrderAndApart) {
  TestServer server;
  Pair p = pair(server);
  std::string burst;
  for (int i = 0; i < 400; ++i)
    burst += masked(2, std::to_string(i) + ":" + std::string(static_cast<std::size_t>(i % 90), 'x'));
  p.mac.send(burst);
  for (int i = 0; i < 400; ++i)
    ASSERT_EQ(p.phone.message(),
              (Frame{2, true, std::to_string(i) + ":" + std::string(static_cast<std::size_t>(i % 90), 'x')}));
}

TEST(Splice, AnswersAPingInsideAMessageAndKeepsItHere) {
  TestServer server;
  Pair p = pair(server);
  p.mac.send(masked(1, "half ", false) + masked(9, "are you there"));
  const auto pong = p.mac.frame();
  EXPECT_EQ(pong, (Frame{10, true, "are you there"}));
  p.mac.send(masked(10, "unasked") + masked(0, "", false) + masked(0, "done"));
  EXPECT_EQ(p.phone.message(), (Frame{1, true, "half done"}));
}

TEST(Splice, AnswersThirtyOnePingsAtOnceAndTheNewestOfAFlood) {
  TestServer server;
  Pair p = pair(server);
  std::string pings;
  for (int i = 0; i < 31; ++i) pings += masked(9, std::to_string(i));
  p.mac.send(pings);
  for (int i = 0; i < 31; ++i) ASSERT_EQ(p.mac.frame(), (Frame{10, true, std::to_string(i)}));
  std::string flood;
  for (int i = 0; i < 3000; ++i) flood += masked(9, std::string(100, 'f'));
  p.mac.send(flood + masked(9, "newest"));
  bool newest = false;
  for (int i = 0; i < 3001 && !newest; ++i) newest = p.mac.frame().value_or(Frame{}).payload == "newest";
  EXPECT_TRUE(newest);
}

TEST(Splice, DropsWhatHasNoPeer) {
  TestServer server;
  const std::string room = fresh_room();
  Client mac(server.port());
  ASSERT_EQ(mac.admit(room, "mac"), R"({"ok":true})");
  mac.send(masked(2, "nobody hears this") + masked(2, "nor the start of this ", false) + masked(9, "sync"));
  ASSERT_EQ(mac.frame(), (Frame{10, true, "sync"}));
  Client phone(server.port());
  ASSERT_NE(phone.admit(room, "phone").find("true"), std::string::npos);
  mac.send(masked(0, "nor its end") + masked(2, "this"));
  EXPECT_EQ(phone.message(), (Frame{2, true, "this"}));
}

TEST(Splice, EndsTheHalfOfASourceThatVanishes) {
  TestServer server;
  for (const bool by_reset : {true, false}) {
    Pair p = pair(server);
    p.mac.send(masked(2, "the beginning", false));
    EXPECT_EQ(p.phone.frame(), (Frame{2, false, "the beginning"}));
    if (by_reset)
      p.mac.reset();
    else
      p.mac.finish_writing();
    EXPECT_EQ(p.phone.frame(), (Frame{0, true, ""})) << "an empty final fragment";
    EXPECT_EQ(p.phone.ending(), (Ending{1001, "peer gone", true}));
  }
}

TEST(Splice, GivesTheNewcomerWholeMessagesOnly) {
  TestServer server;
  const std::string room = fresh_room();
  Pair p = pair(server, true, 0, room);
  p.mac.send(masked(2, "for the old one ", false));
  ASSERT_EQ(p.phone.frame()->payload, "for the old one ");
  p.phone.send(masked(1, "from the old one ", false));
  ASSERT_EQ(p.mac.frame()->payload, "from the old one ");
  Client newcomer(server.port());
  ASSERT_NE(newcomer.admit(room, "phone").find("true"), std::string::npos);
  EXPECT_EQ(p.phone.ending(milliseconds(3000)).reason, "displaced");
  EXPECT_EQ(p.mac.frame(), (Frame{0, true, ""}));
  p.mac.send(masked(0, "the rest") + masked(2, "for the new one"));
  EXPECT_EQ(newcomer.message(), (Frame{2, true, "for the new one"}));
  newcomer.send_frame(1, "hello");
  EXPECT_EQ(p.mac.message(), (Frame{1, true, "hello"}));
}

TEST(Splice, HoldsBackTheSourceAndLosesNothing) {
  Options options;
  options.tls = false;
  options.relay.meter = {UINT64_MAX, UINT64_MAX, std::chrono::hours(24)};
  TestServer server(options);
  Pair p = pair(server, false, 16 * 1024);
  const std::string message = noise(100'000);
  std::string block;
  for (int i = 0; i < 400; ++i) block += masked(2, message);
  const std::size_t taken = p.mac.send_some(block, milliseconds(700));
  EXPECT_LT(taken, 20u * 1024 * 1024) << "the relay went on reading";
  std::thread rest([&] { p.mac.send(block.substr(taken)); });
  for (int i = 0; i < 400; ++i) ASSERT_EQ(p.phone.message()->payload, message) << i;
  rest.join();
}

TEST(Splice, KeepsDataBehindTheProof) {
  TestServer server;
  const std::string room = fresh_room();
  Client mac(server.port());
  ASSERT_EQ(mac.admit(room, "mac"), R"({"ok":true})");
  Client phone(server.port());
  ASSERT_TRUE(phone.upgrade(
      room, masked(1, R"({"v":1,"role":"phone"})") + masked(1, "{}") + masked(2, "first") + masked(9, "p")));
  EXPECT_EQ(mac.message(), (Frame{2, true, "first"}));
}

TEST(Splice, KeepsDataBehindAProofThatIsNotDecided) {
  Options options;
  options.relay.rendezvous = seconds(3);
  TestServer server(options);
  const std::string room = fresh_room();
  Client phone(server.port());
  ASSERT_TRUE(phone.upgrade(
      room, masked(1, R"({"v":1,"role":"phone"})") + masked(1, "{}") + masked(2, "early") + masked(2, "birds")));
  ASSERT_TRUE(phone.message());  // the nonce
  EXPECT_FALSE(phone.message(milliseconds(200)));
  Client mac(server.port());
  ASSERT_EQ(mac.admit(room, "mac"), R"({"ok":true})");
  EXPECT_EQ(mac.message(), (Frame{2, true, "early"}));
  EXPECT_EQ(mac.message(), (Frame{2, true, "birds"}));
}

TEST(Splice, NoticesThatAHeldPhoneHungUp) {
  Options options;
  options.relay.rendezvous = seconds(3);
  TestServer server(options);
  const std::string room = fresh_room();
  {
    Client phone(server.port());
    ASSERT_TRUE(phone.upgrade(room, masked(1, R"({"v":1,"role":"phone"})") + masked(1, "{}")));
    ASSERT_TRUE(phone.message());
  }
  EXPECT_TRUE(eventually([&] { return server.counters().connections == 0; }));
}

TEST(Splice, CountsWhatItRelays) {
  TestServer server;
  Pair p = pair(server);
  p.mac.send_frame(2, std::string(1000, 'x'));
  p.phone.send(masked(1, "ab", false) + masked(0, "c"));
  ASSERT_TRUE(p.phone.message());
  ASSERT_TRUE(p.mac.message());
  const Counters c = server.counters();
  EXPECT_EQ(c.from_mac.bytes, 1000u);
  EXPECT_EQ(c.from_mac.messages, 1u);
  EXPECT_EQ(c.from_phone.bytes, 3u);
  EXPECT_EQ(c.from_phone.messages, 1u);
  EXPECT_EQ(c.upgrades_total, 2u);
  EXPECT_EQ(c.websockets, 2u);
}

TEST(Splice, PacesARoomByNotReading) {
  Options options;
  options.net.room_bytes_per_second = 100'000;
  TestServer server(options);
  Pair p = pair(server);
  const auto start = std::chrono::steady_clock::now();
  std::thread sender([&] {
    for (int i = 0; i < 30; ++i) p.mac.send_frame(2, std::string(10'000, 'x'));
  });
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(p.phone.message());
  sender.join();
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GT(took, milliseconds(1600)) << "300 kB at 100 kB/s with a burst of 100 kB take two seconds";
  EXPECT_LT(took, milliseconds(4500));
}

TEST(Splice, PacesTheBoxWithoutStarvingARoom) {
  Options options;
  options.net.box_bytes_per_second = 200'000;
  TestServer server(options);
  Pair greedy = pair(server), modest = pair(server);
  std::thread flood([&] {
    for (int i = 0; i < 60; ++i) greedy.mac.send_frame(2, std::string(10'000, 'g'));
  });
  std::this_thread::sleep_for(milliseconds(300));
  modest.mac.send_frame(2, std::string(5'000, 'm'));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(modest.phone.message());
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(1500));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(greedy.phone.message());
  flood.join();
}

}  // namespace
}  // namespace tandem::net::wire

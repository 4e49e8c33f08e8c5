// The door and the ends of connections, over real TLS and real HTTP.
#include "unit/net/wire.hpp"

#include <gtest/gtest.h>

namespace tandem::net::wire {
namespace {

using std::chrono::milliseconds;

const std::string kRoom(64, 'a');

std::string post(const std::string& path, const std::string& body, const std::string& lines = "",
                 const std::string& room = kRoom) {
  return "POST " + path + " HTTP/1.1\r\nHost: relay.test\r\nx-relay-room: " + room +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + lines + "\r\n" + body;
}

// The status lines that come for these bytes, and whether the connection ended: "200 400 end".
std::string statuses(const TestServer& server, const std::string& bytes, bool tls = true) {
  Client client(server.port(), tls);
  client.send(bytes);
  std::string all, out;
  while (true) {
    const auto more = client.read(milliseconds(700));
    if (more) all += *more;
    if (!more || more->empty()) {
      for (std::size_t at = 0; (at = all.find("HTTP/1.1 ", at)) != std::string::npos; at += 9)
        out += all.substr(at + 9, 3) + " ";
      return out + (more ? "end" : "open");
    }
  }
}

TEST(Server, KeepsConnectionsAliveAndServesPipelinedRequests) {
  TestServer server;
  EXPECT_EQ(statuses(server, post("/attest/challenge", "{}") + post("/attest/challenge", "") +
                                 post("/register", "{}", "Connection: close\r\n")),
            "200 200 400 end");
  EXPECT_EQ(statuses(server, post("/nope", "") + post("/attest/challenge", "")), "404 200 open");
}

TEST(Server, NeverServesWhatIsPipelinedBehindARefusal) {
  TestServer server;
  const std::string upgrade =
      "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nx-relay-room: bad\r\n\r\n";
  EXPECT_EQ(statuses(server, upgrade + post("/attest/challenge", "")), "400 end");
  EXPECT_EQ(statuses(server, "GET / HTTP/1.1\nHost: a\n\n" + post("/attest/challenge", "")), "400 end");
  EXPECT_EQ(
      statuses(server, post("/attest/challenge", "x", "Origin: https://x.test\r\n") + post("/attest/challenge", "")),
      "403 end");
  EXPECT_EQ(statuses(server, post("/delete", std::string(70'000, 'x'))), "413 end");
}

TEST(Server, AsksForABodyThatWaitsToBeAskedFor) {
  TestServer server;
  Client client(server.port());
  client.send("POST /attest/challenge HTTP/1.1\r\nHost: a\r\nx-relay-room: " + kRoom +
              "\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(client.response().starts_with("HTTP/1.1 100 "));
  client.send("{}");
  EXPECT_TRUE(client.response().starts_with("HTTP/1.1 200 "));
}

TEST(Server, ClosesWhatDoesNotArriveInTime) {
  Options options;
  options.net.request = milliseconds(300);
  TestServer server(options);
  Client silent(server.port(), false), half_head(server.port()), half_body(server.port()), idle(server.port());
  half_head.send("GET / HTTP/1.1\r\nHost:");
  half_body.send("POST /delete HTTP/1.1\r\nHost: a\r\nx-relay-room: " + kRoom + "\r\nContent-Length: 10\r\n\r\nabc");
  idle.send(post("/attest/challenge", ""));
  EXPECT_TRUE(idle.response().starts_with("HTTP/1.1 200 "));
  EXPECT_EQ(silent.read(milliseconds(1500)), "");
  EXPECT_TRUE(half_head.response().starts_with("HTTP/1.1 408 "));
  EXPECT_TRUE(half_body.response().starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(idle.read(milliseconds(1500)), "") << "an idle connection ends without a word";
  EXPECT_TRUE(eventually([&] { return server.observed().all<observed::Rejected>().size() == 2; }));
  for (const auto& rejected : server.observed().all<observed::Rejected>())
    EXPECT_EQ(rejected.reason, RejectReason::timeout);
}

TEST(Server, NamesTheOwnerThoughTheBucketWentWhileARequestWaited) {
  Options options;
  options.relay.hostname = "relay.test";
  options.relay.resolved = true;
  options.store_answers = false;
  TestServer server(options);
  const auto adopt = [&](std::uint64_t version, const std::string& high) {
    auto map = std::get<shard::ShardMap>(
        shard::ShardMap::make(MapVersion{version}, {{0, 32767, "relay.test"}, {32768, 65535, high}}));
    server.run(
        [&](Server& s) { s.dispatch(relay::event::MapReceived{std::make_shared<shard::ShardMap>(std::move(map))}); });
  };
  adopt(1, "relay.test");
  Client client(server.port());
  client.send(post("/delete", "{}"));
  ASSERT_TRUE(eventually([&] { return server.rooms_asked_for() == 1; }));
  adopt(2, "other.test");
  const std::string answer = client.response();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 421 ")) << answer;
  EXPECT_NE(answer.find("x-relay-owner: other.test\r\n"), std::string::npos) << answer;
  EXPECT_NE(answer.find("Content-Type: text/plain"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\nmisdirected")) << answer;
}

TEST(Server, AnswersInTimeThoughTheStoreNeverDoes) {
  Options options;
  options.relay.request = milliseconds(300);
  options.store_answers = false;
  TestServer server(options);
  Client client(server.port());
  client.send(post("/delete", "{}"));
  const std::string answer = client.response();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 500 ")) << answer;
  EXPECT_TRUE(answer.ends_with("state unavailable\"}")) << answer;
}

TEST(Server, ResumesTlsSessions) {
  TestServer server;
  Client first(server.port());
  first.send(post("/attest/challenge", ""));
  ASSERT_FALSE(first.response().empty());
  SSL_SESSION* session = SSL_get1_session(first.ssl());
  ASSERT_NE(session, nullptr);
  EXPECT_TRUE(SSL_SESSION_is_resumable(session));
  Client second(server.port(), false);
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  SSL_set_session(ssl, session);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl, in, out);
  for (int i = 0; i < 10 && SSL_connect(ssl) != 1; ++i) {
    char* data = nullptr;
    const long n = BIO_get_mem_data(out, &data);
    second.send(std::string(data, static_cast<std::size_t>(n)));
    (void)BIO_reset(out);
    if (const auto got = second.read(milliseconds(1000)); got)
      BIO_write(in, got->data(), static_cast<int>(got->size()));
  }
  EXPECT_EQ(SSL_session_reused(ssl), 1);
  SSL_free(ssl);
  SSL_CTX_free(context);
  SSL_SESSION_free(session);
}

TEST(Server, AnswersGarbageWithAnEnd) {
  TestServer server;
  Client garbage(server.port(), false);
  garbage.send("GET / HTTP/1.1\r\nHost: this is no TLS\r\n\r\n");
  EXPECT_TRUE(eventually([&] {
    const auto got = garbage.read(milliseconds(100));
    return got && got->empty();
  }));
  EXPECT_TRUE(eventually([&] { return server.counters().connections == 0; }));
  const auto handshakes = server.observed().all<observed::TlsHandshake>();
  ASSERT_EQ(handshakes.size(), 1u);
  EXPECT_FALSE(handshakes[0].ok);
}

TEST(Server, ClosesFaultyFramesWithTheirCodeAndTellsThePeer) {
  TestServer server;
  const std::vector<std::pair<std::string, Ending>> faults = {
      {std::string("\x82\x01x"), {1002, "", true}},
      {masked(3, "x"), {1002, "", true}},
      {masked(8, "x"), {1002, "", true}},
      {masked(8, std::string("\x03\xed", 2)), {1002, "", true}},
      {masked(8, std::string("\x03\xe8\xff", 3)), {1007, "", true}},
      {std::string("\x82\xff\0\0\0\0\0\x04\0\x01mask", 14), {1009, "frame too large", true}},
  };
  for (const auto& [bytes, wanted] : faults) {
    Pair p = pair(server);
    p.phone.send(bytes);
    EXPECT_EQ(p.phone.ending(), wanted);
    EXPECT_EQ(p.mac.ending(), (Ending{1001, "peer gone", true}));
  }
  Client pending(server.port());
  ASSERT_TRUE(pending.upgrade(fresh_room()));
  pending.send_frame(1, "\xff\xfe");
  EXPECT_EQ(pending.ending(), (Ending{1007, "", true})) << "TEXT that is none, before admission";
}

TEST(Server, EchoesACloseAndFreesTheSocket) {
  TestServer server;
  for (const std::string& payload : {std::string(), std::string("\x03\xe8") + "bye", std::string("\x0f\xa0")}) {
    Pair p = pair(server);
    p.phone.send_frame(8, payload);
    const auto echo = p.phone.frame();
    EXPECT_EQ(echo, (Frame{8, true, payload}));
    EXPECT_EQ(p.mac.ending(), (Ending{1001, "peer gone", true}));
  }
  EXPECT_TRUE(eventually([&] { return server.counters().connections == 0; }));
}

TEST(Server, FreesASocketThatNeverAnswersAClose) {
  TestServer server;
  Client mute(server.port());
  ASSERT_TRUE(mute.upgrade(fresh_room()));
  mute.send_frame(1, "no hello");
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(mute.ending(milliseconds(6000), false), (Ending{1008, "bad hello", true}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5000));
  EXPECT_TRUE(eventually([&] { return server.counters().connections == 0; }));
}

TEST(Server, LetsTheReasonArriveThoughTheClientGoesOnSending) {
  TestServer server;
  Client chatty(server.port());
  ASSERT_TRUE(chatty.upgrade(fresh_room()));
  std::string bytes = masked(1, "no hello");
  for (int i = 0; i < 50; ++i) bytes += masked(1, std::string(8000, 'x'));
  chatty.send(bytes);
  EXPECT_EQ(chatty.ending().reason, "bad hello");
}

TEST(Server, ReportsEachEndOnceByWhoEndedItFirst) {
  TestServer server;
  {
    Pair p = pair(server);
    p.phone.send_frame(8, "\x03\xe8");
    EXPECT_EQ(p.mac.ending(), (Ending{1001, "peer gone", true}));
  }
  {
    Pair p = pair(server);
    p.mac.reset();
    EXPECT_EQ(p.phone.ending().reason, "peer gone");
  }
  ASSERT_TRUE(eventually([&] { return server.counters().connections == 0; }));
  const auto ends = server.observed().all<observed::SocketEnded>();
  ASSERT_EQ(ends.size(), 4u);
  EXPECT_EQ(ends[0].reason, CloseReason::client_close);
  EXPECT_EQ(ends[0].by, Initiator::client);
  EXPECT_EQ(ends[0].role, Role::phone);
  EXPECT_EQ(ends[1].reason, CloseReason::peer_gone);
  EXPECT_EQ(ends[1].by, Initiator::relay);
  EXPECT_EQ(ends[2].by, Initiator::network);
  EXPECT_EQ(ends[2].code, 1006);
  EXPECT_EQ(ends[3].reason, CloseReason::peer_gone);
}

TEST(Server, DropsWhoShowsNoSignOfLife) {
  Options options;
  options.net.keepalive = milliseconds(300);
  TestServer server(options);
  Client dead(server.port()), alive(server.port());
  ASSERT_EQ(dead.admit(fresh_room(), "mac"), R"({"ok":true})");
  ASSERT_EQ(alive.admit(fresh_room(), "mac"), R"({"ok":true})");
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < milliseconds(1500))
    (void)alive.message(milliseconds(100));  // answers pings
  EXPECT_EQ(dead.ending(milliseconds(500)), (Ending{1006, "", true}));
  EXPECT_EQ(server.counters().websockets, 1u);
  EXPECT_EQ(server.observed().all<observed::KeepaliveTimeout>().size(), 1u);
}

TEST(Server, ClosesASlowConsumerAndTellsItsPeer) {
  Options options;
  options.tls = false;
  options.net.stall = milliseconds(600);
  options.relay.meter = {UINT64_MAX, UINT64_MAX, std::chrono::hours(24)};
  TestServer server(options);
  Pair p = pair(server, false, 8 * 1024);
  std::string block;
  for (int i = 0; i < 200; ++i) block += masked(2, std::string(100'000, 'x'));
  (void)p.mac.send_some(block, milliseconds(400));
  EXPECT_EQ(p.mac.ending(milliseconds(5000), false).reason, "peer gone");
  const auto stalls = server.observed().all<observed::Stalled>();
  ASSERT_FALSE(stalls.empty());
  EXPECT_TRUE(stalls.back().closed);
  EXPECT_GE(stalls.back().stood, milliseconds(600));
  EXPECT_TRUE(eventually([&] { return server.counters().websockets == 0; })) << "cut after its grace";
}

TEST(Server, StopsGracefully) {
  TestServer server;
  Pair p = pair(server);
  Client waiting(server.port());
  p.mac.send_frame(2, "the last word");
  std::thread reader([&] {
    EXPECT_EQ(p.phone.message(), (Frame{2, true, "the last word"}));
    EXPECT_EQ(p.phone.ending(), (Ending{1001, "server shutting down", true}));
  });
  std::thread other([&] { EXPECT_EQ(p.mac.ending(), (Ending{1001, "server shutting down", true})); });
  EXPECT_LT(server.stop(), milliseconds(4000));
  reader.join();
  other.join();
  EXPECT_EQ(waiting.read(milliseconds(1000)), "");
  EXPECT_EQ(server.counters().connections, 0u);
}

TEST(Server, StopsInTimeThoughNobodyAnswers) {
  Options options;
  options.net.shutdown = milliseconds(500);
  TestServer server(options);
  Pair p = pair(server);
  EXPECT_LT(server.stop(), milliseconds(2000));
}

TEST(Server, ReadsAProxyHeaderFromTrustedAddressesOnly) {
  for (const bool trusted : {true, false}) {
    Options options;
    options.net.proxy = {
        ProxySettings::Trust::proxy_protocol, 1, {AddressBlock::parse(trusted ? "127.0.0.0/8" : "10.0.0.0/8").value()}};
    options.relay.sockets_per_client = 1;
    options.tls = false;
    TestServer server(options);
    const auto connect = [&](const std::string& from) {
      auto client = std::make_unique<Client>(server.port(), false);
      client->send("PROXY TCP4 " + from + " 127.0.0.1 1000 443\r\n");
      return client;
    };
    auto a = connect("192.0.2.1"), b = connect("192.0.2.2"), c = connect("192.0.2.1");
    EXPECT_TRUE(a->upgrade(fresh_room()));
    EXPECT_EQ(b->upgrade(fresh_room()), trusted) << "another client only where the proxy is believed";
    EXPECT_FALSE(c->upgrade(fresh_room()));
    Client none(server.port(), false);
    none.send(post("/attest/challenge", ""));
    if (trusted)
      EXPECT_EQ(none.read(milliseconds(1000)), "") << "closed at once, unanswered";
    else
      EXPECT_TRUE(none.response().starts_with("HTTP/1.1 200 "));
  }
}

TEST(Server, ListensOnIpv6AndSaysWhyItCannot) {
  TestServer server;
  server.run([&](Server& s) {
    EXPECT_TRUE(s.listen("[::1]:0").has_value());
    EXPECT_FALSE(s.listen("127.0.0.1:" + std::to_string(server.port())).has_value()) << "taken";
    for (const char* bad : {"", "localhost:1", "127.0.0.1", "127.0.0.1:99999", "::1:443", "[127.0.0.1]:0"})
      EXPECT_FALSE(s.listen(bad).has_value()) << bad;
  });
}

}  // namespace
}  // namespace tandem::net::wire

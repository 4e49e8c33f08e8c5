#include "tandem/net/http_fetch.hpp"

#include "unit/support/scripted_origin.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

namespace tandem::net {
namespace {

using test::http_answer;
using test::OriginPeer;
using test::ScriptedOrigin;
using test::TestCertificate;

ScriptedOrigin::Script raw(std::string bytes) {
  return [bytes = std::move(bytes)](const std::string&, OriginPeer& peer) {
    peer.send(bytes);
    peer.goodbye();
  };
}

FetchResult get(const std::string& url, Duration timeout = seconds(3), const std::string& ca = {}) {
  FetchRequest request;
  request.url = url;
  request.timeout = timeout;
  request.ca_file = ca;
  request.max_body_bytes = 1000;
  return fetch_blocking(std::move(request));
}

std::string outcome(const FetchResult& result) {  // a body, or "cause: detail"
  if (const auto* answer = std::get_if<FetchAnswer>(&result)) return "ok " + answer->body;
  const auto& f = std::get<FetchFailure>(result);
  return std::string(label(f.cause)) + ": " + f.detail;
}

FetchCause cause(const FetchResult& result) {
  EXPECT_TRUE(std::holds_alternative<FetchFailure>(result)) << outcome(result);
  return std::holds_alternative<FetchFailure>(result) ? std::get<FetchFailure>(result).cause : FetchCause::other;
}

TEST(FetchUrl, TakesWhatASpecAllowsAndNothingElse) {
  for (const char* good :
       {"https://a.example/x", "https://a.example", "https://a.example:8443/x?y=1", "http://127.0.0.1:1/",
        "http://localhost/", "http://[::1]:80/x", "https://[2001:db8::1]/", "file:///tmp/x"})
    EXPECT_TRUE(std::holds_alternative<FetchUrl>(parse_fetch_url(good))) << good;
  for (const char* bad :
       {"http://a.example/x", "ftp://127.0.0.1/", "https://", "https:///x", "https://u@a.example/",
        "https://a.example:0/", "https://a.example:65536/", "https://a.example:/x y", "https://[zz]/", "a.example",
        "file://other/x", "file:x", "file:///a%zz", "file:///a%00", "https://a\x80/", "http://127.0.0.1.example/"})
    EXPECT_TRUE(std::holds_alternative<std::string>(parse_fetch_url(bad))) << bad;
}

TEST(FetchUrl, KeepsTheTargetVerbatimButForTheFragment) {
  EXPECT_EQ(std::get<FetchUrl>(parse_fetch_url("https://A.example:8443?q=%2F#f")).target, "/?q=%2F");
  const auto url = std::get<FetchUrl>(parse_fetch_url("https://A.example:8443/a/../b?c"));
  EXPECT_EQ(url.target, "/a/../b?c");
  EXPECT_EQ(url.host, "a.example");
  EXPECT_EQ(url.authority, "A.example:8443");
}

TEST(HttpFetch, ReturnsStatusHeadersAndBody) {
  ScriptedOrigin origin(raw(http_answer("hello", "200 OK", "ETag: \"x\"\r\n")));
  const auto result = get(origin.url());
  ASSERT_EQ(outcome(result), "ok hello");
  EXPECT_EQ(std::get<FetchAnswer>(result).header("etag"), "\"x\"");
  ASSERT_EQ(origin.heads().size(), 1u);
  const std::string head = origin.heads()[0];
  EXPECT_TRUE(
      head.starts_with("GET /shardmap.json HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(origin.port()) + "\r\n"))
      << head;
  EXPECT_EQ(head.find("Accept-Encoding"), std::string::npos);
  EXPECT_NE(head.find("Connection: close"), std::string::npos);
}

TEST(HttpFetch, ReadsEveryHonestFraming) {
  const std::pair<const char*, const char*> cases[] = {
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", "ok abcde"},
      {"HTTP/1.1 200 OK\r\n\r\nuntil the end", "ok until the end"},
      {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok ok"},
      {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", "ok x"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "ok "},
  };
  for (const auto& [bytes, want] : cases) {
    ScriptedOrigin origin(raw(bytes));
    EXPECT_EQ(outcome(get(origin.url())), want) << bytes;
  }
}

TEST(HttpFetch, ReadsAnAnswerThatArrivesByteByByte) {
  ScriptedOrigin origin([](const std::string&, OriginPeer& peer) {
    for (const char c : std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
      peer.send({&c, 1});
  });
  EXPECT_EQ(outcome(get(origin.url())), "ok abc");
}

TEST(HttpFetch, NamesTheCauseOfEveryDishonestAnswer) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const std::pair<std::string, FetchCause> cases[] = {
      {"", FetchCause::other},
      {"garbage\r\n\r\n", FetchCause::other},
      {ok, FetchCause::other},
      {ok + "Content-Length: 10\r\n\r\nshort", FetchCause::other},
      {ok + "Content-Length: -1\r\n\r\nx", FetchCause::other},
      {ok + "Content-Length: abc\r\n\r\nx", FetchCause::other},
      {ok + "Content-Length: 18446744073709551616\r\n\r\nx", FetchCause::other},
      {ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", FetchCause::other},
      {ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", FetchCause::other},
      {ok + "Transfer-Encoding: gzip\r\n\r\nx", FetchCause::other},
      {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", FetchCause::other},
      {ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", FetchCause::other},
      {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", FetchCause::other},
      {ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc0\r\n\r\n", FetchCause::other},
      {ok + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", FetchCause::other},
      {ok + "Content-Encoding: identity\r\nContent-Length: 1\r\n\r\nx", FetchCause::other},
      {ok + "X: " + std::string(20000, 'x') + "\r\n\r\n", FetchCause::other},
      {ok + "Content-Length: 1001\r\n\r\n" + std::string(1001, 'x'), FetchCause::parse},
      {ok + "\r\n" + std::string(1001, 'x'), FetchCause::parse},
      {"HTTP/1.1 301 Moved\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n", FetchCause::http_other},
      {"HTTP/1.1 204 None\r\n\r\n", FetchCause::http_other},
      {"HTTP/1.1 206 Part\r\nContent-Length: 1\r\n\r\nx", FetchCause::http_other},
      {"HTTP/1.1 304 Not Modified\r\n\r\n", FetchCause::http_other},
      {"HTTP/1.1 101 Switching Protocols\r\n\r\n", FetchCause::http_other},
      {"HTTP/1.1 404 No\r\nContent-Length: 5000\r\n\r\nx", FetchCause::http_4xx},
      {"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\nzz", FetchCause::http_5xx},
  };
  for (const auto& [bytes, want] : cases) {
    ScriptedOrigin origin(raw(bytes));
    const auto result = get(origin.url());
    EXPECT_EQ(cause(result), want) << bytes.substr(0, 100) << " -> " << outcome(result);
  }
}

TEST(HttpFetch, RetriesNeitherFourHundredsNorOversizedBodies) {
  ScriptedOrigin origin(raw(http_answer("", "410 Gone")));
  EXPECT_FALSE(std::get<FetchFailure>(get(origin.url())).retryable);
  origin.script(raw(http_answer(std::string(2000, 'x'))));
  const auto big = get(origin.url());
  EXPECT_FALSE(std::get<FetchFailure>(big).retryable);
  EXPECT_EQ(std::get<FetchFailure>(big).oversize_bytes, 2000u);
  origin.script(raw(http_answer("", "500 Oops")));
  EXPECT_TRUE(std::get<FetchFailure>(get(origin.url())).retryable);
}

TEST(HttpFetch, TakesA304OnlyWhereItAsked) {
  ScriptedOrigin origin(raw("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"));
  FetchRequest request;
  request.url = origin.url();
  request.headers = {{"If-None-Match", "\"x\""}};
  const auto result = fetch_blocking(request);
  ASSERT_TRUE(std::holds_alternative<FetchAnswer>(result)) << outcome(result);
  EXPECT_EQ(std::get<FetchAnswer>(result).status, 304);
  EXPECT_NE(origin.heads()[0].find("If-None-Match: \"x\"\r\n"), std::string::npos);
}

TEST(HttpFetch, GivesAnyStatusWhereAsked) {
  ScriptedOrigin origin(raw(http_answer("no map", "503 Unavailable")));
  FetchRequest request;
  request.url = origin.url();
  request.any_status = true;
  const auto result = fetch_blocking(request);
  ASSERT_TRUE(std::holds_alternative<FetchAnswer>(result)) << outcome(result);
  EXPECT_EQ(std::get<FetchAnswer>(result).status, 503);
  EXPECT_EQ(std::get<FetchAnswer>(result).body, "no map");
}

TEST(HttpFetch, GivesACodedBodyAsItCameWhereAsked) {
  ScriptedOrigin origin(raw(http_answer("\x1f\x8b", "200 OK", "Content-Encoding: gzip\r\n")));
  FetchRequest request;
  request.url = origin.url();
  request.any_coding = true;
  const auto result = fetch_blocking(request);
  ASSERT_EQ(outcome(result), "ok \x1f\x8b");
  EXPECT_EQ(std::get<FetchAnswer>(result).header("content-encoding"), "gzip");
}

TEST(HttpFetch, BoundsASilentAndADribblingServerByOneDeadline) {
  const ScriptedOrigin::Script scripts[] = {[](const std::string&, OriginPeer& peer) {
                                              char c = 0;
                                              ::recv(peer.fd(), &c, 1, 0);
                                            },
                                            [](const std::string&, OriginPeer& peer) {
                                              peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
                                              for (int i = 0; i < 30; ++i) {
                                                peer.send("x");
                                                std::this_thread::sleep_for(milliseconds(20));
                                              }
                                            }};
  for (const auto& script : scripts) {
    ScriptedOrigin origin(script);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(cause(get(origin.url(), milliseconds(200))), FetchCause::timeout);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(2));
  }
}

TEST(HttpFetch, NamesARefusedConnectionAndAnUnknownName) {
  std::string url;
  {
    ScriptedOrigin gone(raw(""));
    url = gone.url();
  }
  EXPECT_EQ(cause(get(url)), FetchCause::connect);
  EXPECT_EQ(cause(get("https://no-such-host.invalid/", milliseconds(1500))), FetchCause::dns);
}

TEST(HttpFetch, ChecksTheCertificateForNameAndAddress) {
  const TestCertificate certificate("DNS:localhost,IP:127.0.0.1");
  ScriptedOrigin origin(raw(http_answer("safe")), &certificate);
  EXPECT_EQ(outcome(get(origin.url("127.0.0.1"), seconds(3), certificate.path())), "ok safe");
  EXPECT_EQ(origin.server_name(), "");
  EXPECT_EQ(outcome(get(origin.url("localhost"), seconds(3), certificate.path())), "ok safe");
  EXPECT_EQ(origin.server_name(), "localhost");
  const TestCertificate stranger("DNS:localhost,IP:127.0.0.1");
  EXPECT_EQ(cause(get(origin.url(), seconds(3), stranger.path())), FetchCause::tls);
  EXPECT_EQ(cause(get(origin.url())), FetchCause::tls) << "the system's CAs do not know it";
  EXPECT_EQ(cause(get(origin.url(), seconds(3), "/no/such/ca.pem")), FetchCause::tls);
  const TestCertificate other("DNS:other.test,IP:127.0.0.2");
  ScriptedOrigin wrong(raw(http_answer("x")), &other);
  EXPECT_EQ(cause(get(wrong.url("127.0.0.1"), seconds(3), other.path())), FetchCause::tls);
  EXPECT_EQ(cause(get(wrong.url("localhost"), seconds(3), other.path())), FetchCause::tls);
}

TEST(HttpFetch, HonoursTheEnvironmentsCertificateFile) {
  const TestCertificate certificate("DNS:localhost,IP:127.0.0.1");
  ScriptedOrigin origin(raw(http_answer("safe")), &certificate);
  ::setenv("SSL_CERT_FILE", certificate.path().c_str(), 1);
  const auto result = get(origin.url());
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_EQ(outcome(result), "ok safe");
}

TEST(HttpFetch, TakesNoCutBodyOverTls) {
  const TestCertificate certificate("IP:127.0.0.1");
  ScriptedOrigin origin([](const std::string&, OriginPeer& peer) { peer.send("HTTP/1.1 200 OK\r\n\r\nhalf"); },
                        &certificate);
  EXPECT_EQ(cause(get(origin.url(), seconds(3), certificate.path())), FetchCause::other);
  origin.script(raw("HTTP/1.1 200 OK\r\n\r\nwhole"));
  EXPECT_EQ(outcome(get(origin.url(), seconds(3), certificate.path())), "ok whole");
}

TEST(HttpFetch, CallsAPlainServerBehindHttpsATlsFailure) {
  ScriptedOrigin plain([](const std::string&, OriginPeer& peer) { peer.send("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  EXPECT_EQ(cause(get("https://127.0.0.1:" + std::to_string(plain.port()) + "/")), FetchCause::tls);
}

TEST(HttpFetch, ReadsRegularFilesAlone) {
  char pattern[] = "/tmp/tandem-fetch-XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern);
  std::ofstream(folder / "a map.json") << "{}";
  EXPECT_EQ(outcome(get("file://" + folder.string() + "/a%20map.json")), "ok {}");
  std::ofstream(folder / "big") << std::string(1001, 'x');
  EXPECT_EQ(cause(get("file://" + folder.string() + "/big")), FetchCause::parse);
  EXPECT_EQ(cause(get("file://" + folder.string())), FetchCause::other);
  EXPECT_EQ(cause(get("file://" + folder.string() + "/none")), FetchCause::other);
  std::filesystem::remove_all(folder);
}

TEST(HttpFetch, NeverCallsBackAfterACancel) {
  ScriptedOrigin origin(raw(http_answer("late")));
  boost::asio::io_context loop;
  HttpFetcher fetcher(loop);
  bool called = false;
  FetchRequest request;
  request.url = origin.url();
  {
    const Fetch dropped = fetcher.start(request, [&](FetchResult) { called = true; });
  }
  request.url = "https://no-such-host.invalid/";
  Fetch cancelled = fetcher.start(request, [&](FetchResult) { called = true; });
  cancelled.cancel();
  request.url = "file:///none";
  const Fetch posted = fetcher.start(request, [&](FetchResult) {});
  loop.run();
  EXPECT_FALSE(called);
}

TEST(HttpFetch, EndsWithItsLoopWhileAFetchRuns) {
  ScriptedOrigin origin([](const std::string&, OriginPeer& peer) {
    char c = 0;
    ::recv(peer.fd(), &c, 1, 0);
  });
  bool called = false;
  {
    boost::asio::io_context loop;
    HttpFetcher fetcher(loop);
    FetchRequest request;
    request.url = origin.url();
    const Fetch running = fetcher.start(request, [&](FetchResult) { called = true; });
    loop.run_for(milliseconds(50));
  }
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace tandem::net

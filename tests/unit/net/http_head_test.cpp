#include "tandem/net/http_head.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::net {
namespace {

const std::string kHost = "Host: relay.test\r\n";

// 0 where it parses, else the status that refuses it.
int status_of(const std::string& head) {
  const auto parsed = parse_head(head);
  const auto* refused = std::get_if<std::uint16_t>(&parsed);
  return refused != nullptr ? *refused : 0;
}

// How a scan of the whole ends: the size of the head, 0 for more to come, or minus the status.
int scan(const std::string& text, std::size_t step = SIZE_MAX) {
  HeadScanner scanner;
  std::string buffer;
  for (std::size_t at = 0; at < text.size(); at += std::min(step, text.size())) {
    buffer += text.substr(at, step);
    const auto found = scanner.scan(buffer);
    if (const auto* f = std::get_if<HeadScanner::Found>(&found)) return static_cast<int>(f->size);
    if (const auto* f = std::get_if<HeadScanner::Fault>(&found)) return -f->status;
  }
  return 0;
}

TEST(HeadScanner, FindsTheEndWhateverThePieces) {
  const std::string head = "GET / HTTP/1.1\r\n" + kHost + "\r\n";
  for (const std::size_t step : {1u, 2u, 3u, 7u, 100u})
    EXPECT_EQ(scan(head + "GET / pipelined", step), static_cast<int>(head.size()));
  EXPECT_EQ(scan(head.substr(0, head.size() - 1)), 0);
}

TEST(HeadScanner, RefusesBareLineEndsAndNulAtOnce) {
  EXPECT_EQ(scan("GET / HTTP/1.1\n"), -400);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\nHost: a\n"), -400);
  EXPECT_EQ(scan("GET / HTTP/1.1\rHost"), -400);
  EXPECT_EQ(scan("GET / HTTP/1.1\r\r\n"), -400);
  EXPECT_EQ(scan(std::string("GET /\0", 6)), -400);
  EXPECT_EQ(scan("\r\nGET / HTTP/1.1\r\n\r\n"), -400);
}

TEST(HeadScanner, HoldsHeadsToSixteenKibibytesAndSixtyFourLines) {
  const std::string start = "GET / HTTP/1.1\r\nX: ";
  const std::string exact = start + std::string(kMaxHeadBytes - start.size() - 4, 'x') + "\r\n\r\n";
  EXPECT_EQ(scan(exact), static_cast<int>(kMaxHeadBytes));
  EXPECT_EQ(scan(start + std::string(kMaxHeadBytes - start.size() - 3, 'x') + "\r\n\r\n"), -431);
  EXPECT_EQ(scan(start + std::string(kMaxHeadBytes, 'x')), -431) << "without an end";
  std::string lines = "GET / HTTP/1.1\r\n";
  for (std::size_t i = 0; i < kMaxHeaderLines; ++i) lines += "A: b\r\n";
  EXPECT_GT(scan(lines + "\r\n"), 0);
  EXPECT_EQ(scan(lines + "A: b\r\n"), -431);
}

TEST(ParseHead, TakesWhatClientsSend) {
  const std::string text =
      "GET /?x=1 HTTP/1.1\r\nhOsT: relay.test:443\r\nX-Relay-Room:\t abc \r\nConnection: keep-alive, "
      "Upgrade\r\nUpgrade: WebSocket\r\n\r\n";
  const auto parsed = parse_head(text);
  ASSERT_TRUE(std::holds_alternative<RequestHead>(parsed));
  const auto& head = std::get<RequestHead>(parsed);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.path, "/");
  EXPECT_TRUE(head.upgrade);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.single("x-relay-room"), "abc");
  EXPECT_TRUE(head.has_token("connection", "upgrade"));
  EXPECT_FALSE(head.single("origin").has_value());
}

TEST(ParseHead, FindsThePathInEachFormOfTarget) {
  const auto path = [](const std::string& method, const std::string& target) -> std::string {
    const std::string text = method + " " + target + " HTTP/1.1\r\n" + kHost + "\r\n";
    const auto parsed = parse_head(text);
    if (const auto* head = std::get_if<RequestHead>(&parsed)) return std::string(head->path);
    return "refused";
  };
  EXPECT_EQ(path("POST", "/register"), "/register");
  EXPECT_EQ(path("POST", "/register?a=/b"), "/register");
  EXPECT_EQ(path("POST", "https://relay.test/register?x"), "/register");
  EXPECT_EQ(path("GET", "HTTP://relay.test"), "/");
  EXPECT_EQ(path("GET", "wss://relay.test?x"), "/");
  EXPECT_EQ(path("OPTIONS", "*"), "*");
  EXPECT_EQ(path("GET", "//"), "//");
  for (const char* bad : {"register", "*", "ftp://a/b", "http:///x", "/a#b",
                          "/a\x01"
                          "b",
                          "/caf\xc3\xa9", "/x y"})
    EXPECT_EQ(path("GET", bad), "refused") << bad;
}

TEST(ParseHead, RefusesWhatIsMalformedOrAmbiguous) {
  const auto get = [](const std::string& lines, const std::string& first = "GET / HTTP/1.1") {
    return status_of(first + "\r\n" + lines + "\r\n");
  };
  const auto post = [&](const std::string& lines) { return get(kHost + lines, "POST /x HTTP/1.1"); };
  EXPECT_EQ(get(kHost), 0);
  EXPECT_EQ(get("", "POST / HTTP/1.0"), 0);
  EXPECT_EQ(get(""), 400) << "no Host";
  EXPECT_EQ(get(kHost + kHost), 400);
  EXPECT_EQ(get("Host: a b\r\n"), 400);
  for (const char* first :
       {"GET /", "GET / HTTP/1.2", "GET / HTTP/2.0", "GET / http/1.1", "GET  / HTTP/1.1", "GET / HTTP/1.1 ",
        " GET / HTTP/1.1", "GET\t/ HTTP/1.1", "G@T / HTTP/1.1", "PRI * HTTP/2.0", ""})
    EXPECT_EQ(get(kHost, first), 400) << first;
  for (const char* line : {" folded: x\r\n", "\tfolded\r\n", "Name : x\r\n", "Na me: x\r\n", ": x\r\n", "no colon\r\n",
                           "N\x80: x\r\n", "A: \x01\r\n", "A: \x7f\r\n"})
    EXPECT_EQ(get(kHost + line), 400) << line;
  EXPECT_EQ(get(kHost + "A: caf\xe9\r\n"), 0);
  EXPECT_EQ(get("Host: a\r\nUpgrade: websocket\r\n", "GET / HTTP/1.0"), 400) << "an HTTP/1.0 upgrade";
  EXPECT_EQ(get(kHost + "Upgrade: websocket\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(get(kHost + "Upgrade: websocket\r\nContent-Length: 0\r\n"), 0);
  for (const char* length : {"+5", "-1", "0x5", "", "5 5", "5,5", "5, 5", "18446744073709551616", "1e3", "\xb2"})
    EXPECT_EQ(post("Content-Length: " + std::string(length) + "\r\n"), 400) << length;
  EXPECT_EQ(post("Content-Length: 5\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(post("Transfer-Encoding: Chunked\r\n"), 0);
  for (const char* coding :
       {"gzip", "identity", "chunked, identity", "gzip, chunked", "\"chunked\"", "xchunked", "chun ked", ""})
    EXPECT_EQ(post("Transfer-Encoding: " + std::string(coding) + "\r\n"), 501) << coding;
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(post("Expect: 100-Continue\r\n"), 0);
  EXPECT_EQ(post("Expect: a cake\r\n"), 417);
}

TEST(ParseHead, ClosesAfterHttp10AndConnectionClose) {
  const auto keeps = [](const std::string& text) { return std::get<RequestHead>(parse_head(text)).keep_alive; };
  const std::string one = "POST / HTTP/1.1\r\n" + kHost + "\r\n",
                    two = "POST / HTTP/1.1\r\n" + kHost + "Connection: foo, Close\r\n\r\n";
  const std::string three = "POST / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_TRUE(keeps(one));
  EXPECT_FALSE(keeps(two));
  EXPECT_FALSE(keeps(three));
}

// "status body|rest"
std::string read_body(const std::string& lines, const std::string& bytes, std::size_t step) {
  const std::string text = "POST / HTTP/1.1\r\n" + kHost + lines + "\r\n";
  const auto parsed = parse_head(text);
  BodyReader reader(std::get<RequestHead>(parsed));
  std::string out, buffer;
  std::size_t at = 0;
  while (true) {
    const BodyReader::Step step_taken = reader.read(buffer, out);
    buffer.erase(0, step_taken.taken);
    if (step_taken.status == BodyReader::Status::done) return "done " + out + "|" + buffer + bytes.substr(at);
    if (step_taken.status == BodyReader::Status::too_large) return "too_large";
    if (step_taken.status == BodyReader::Status::malformed) return "malformed";
    if (at >= bytes.size()) return "need_more";
    buffer += bytes.substr(at, step);
    at += std::min(step, bytes.size() - at);
  }
}

TEST(BodyReader, EndsWhereTheFramingSays) {
  for (const std::size_t step : {1u, 2u, 5u, 1000u}) {
    EXPECT_EQ(read_body("", "next", step), "done |next");
    EXPECT_EQ(read_body("Content-Length: 5\r\n", "hellonext", step), "done hello|next");
    EXPECT_EQ(read_body("Content-Length: 5\r\n", "hell", step), "need_more");
    EXPECT_EQ(
        read_body("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n3;a=b\r\nyou\r\n0\r\nTrailer: x\r\n\r\nnext", step),
        "done helloyou|next");
    EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "0\r\n\r\nnext", step), "done |next");
    EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "a\r\n0123456789\r\n", step), "need_more");
  }
}

TEST(BodyReader, RefusesBrokenChunks) {
  for (const char* bad : {"\r\n", "g\r\n", "-1\r\n", "0x5\r\nhello", "5\nhello", "5\r\nhelloX\r\n", "5\r\nhello\rX",
                          "5 \nx", "0\r\nT: x\n\r\n", "5\r\nhello\n"})
    for (const std::size_t step : {1u, 1000u})
      EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", bad, step), "malformed") << bad;
  EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "1;" + std::string(10000, 'x'), 1000), "malformed")
      << "an extension without an end";
  EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "0\r\nT: " + std::string(10000, 'x'), 1000), "malformed")
      << "a trailer without an end";
}

TEST(BodyReader, HoldsBodiesToSixtyFourKibibytes) {
  const std::string full(kMaxBodyBytes, 'x');
  EXPECT_EQ(read_body("Content-Length: 65536\r\n", full, 5000), "done " + full + "|");
  EXPECT_EQ(read_body("Content-Length: 65537\r\n", full, 5000), "too_large");
  EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "10000\r\n" + full + "\r\n0\r\n\r\n", 5000),
            "done " + full + "|");
  EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "10001\r\n", 5000), "too_large");
  EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "10000\r\n" + full + "\r\n1\r\n", 5000), "too_large");
  EXPECT_EQ(read_body("Transfer-Encoding: chunked\r\n", "ffffffffffffffff1\r\n", 5000), "too_large");
}

}  // namespace
}  // namespace tandem::net

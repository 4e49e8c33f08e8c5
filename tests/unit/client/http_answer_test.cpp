#include "tandem/client/http_answer.hpp"

#include <gtest/gtest.h>

namespace tandem::client {
namespace {

using State = HttpAnswer::State;

// Fed whole, and byte by byte: both must come out the same.
HttpAnswer read(std::string_view text, State expected) {
  HttpAnswer whole, trickled;
  EXPECT_EQ(whole.feed(bytes_of(text)), expected) << text;
  for (const char& c : text) trickled.feed(bytes_of({&c, 1}));
  EXPECT_EQ(trickled.state(), expected) << text;
  EXPECT_EQ(trickled.body(), whole.body());
  return whole;
}

TEST(HttpAnswer, ReadsABodyOfDeclaredLength) {
  const auto answer = read("HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\nX-A:  b \r\n\r\nforbidden", State::complete);
  EXPECT_EQ(answer.status(), 403);
  EXPECT_EQ(answer.body(), "forbidden");
  EXPECT_EQ(answer.header("x-a"), "b");
}

TEST(HttpAnswer, KeepsWhatFollowsAnUpgrade) {
  HttpAnswer answer;
  EXPECT_EQ(answer.feed(bytes_of("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nframes")),
            State::complete);
  EXPECT_EQ(std::string(answer.rest().begin(), answer.rest().end()), "frames");
}

TEST(HttpAnswer, ReadsChunkedBodies) {
  EXPECT_EQ(
      read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", State::complete)
          .body(),
      "abcde");
}

TEST(HttpAnswer, ReadsABodyThatEndsWithTheStream) {
  HttpAnswer answer = read("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc", State::incomplete);
  EXPECT_EQ(answer.end(), State::complete);
  EXPECT_EQ(answer.body(), "abc");
}

TEST(HttpAnswer, IsMalformedWhereTheBodyIsCutShort) {
  HttpAnswer answer = read("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", State::incomplete);
  EXPECT_EQ(answer.end(), State::malformed);
}

TEST(HttpAnswer, RefusesWhatIsNoAnswer) {
  for (const char* text : {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"})
    read(text, State::malformed);
}

}  // namespace
}  // namespace tandem::client

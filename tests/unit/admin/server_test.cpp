#include "tandem/admin/server.hpp"

#include "sample_status.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace tandem::admin {
namespace {

// A server on its own loop in a thread, and a blocking client.
class Bench {
 public:
  Bench() {
    AdminSource source;
    source.metrics = [] { return std::string("# HELP x y\n"); };
    source.status = [this] {
      auto s = test::sample_status();
      if (!ready) s.not_ready = "no map yet";
      return s;
    };
    source.explain = [](const RoomName& room) {
      relay::Explanation e;
      e.tag = room.tag();
      return e;
    };
    server_ = std::make_unique<Server>(loop_, source);
    EXPECT_FALSE(server_->listen("127.0.0.1", 0));
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~Bench() {
    boost::asio::post(loop_, [this] { server_->close(); });
    thread_.join();
  }

  [[nodiscard]] int connect() const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port_);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{5, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    return fd;
  }
  static void send(int fd, const std::string& bytes) {
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  static std::string read_to_end(int fd) {
    std::string out;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::recv(fd, buffer, sizeof buffer, 0)) > 0) out.append(buffer, static_cast<std::size_t>(n));
    ::close(fd);
    return out;
  }
  [[nodiscard]] std::string raw(const std::string& bytes) const {
    const int fd = connect();
    send(fd, bytes);
    return read_to_end(fd);
  }
  [[nodiscard]] std::string get(const std::string& path, const std::string& host = "127.0.0.1",
                                const std::string& method = "GET") const {
    return raw(method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  }
  static int status(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9, 3)) : 0;
  }

  std::atomic<bool> ready{true};

 private:
  boost::asio::io_context loop_{1};
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(AdminServer, ServesItsPages) {
  const Bench b;
  for (const char* path : {"/metrics", "/healthz", "/readyz", "/status", "/", "/status?x=1"})
    EXPECT_EQ(Bench::status(b.get(path)), 200) << path;
  EXPECT_EQ(Bench::status(b.get("/nowhere")), 404);
  EXPECT_TRUE(has(b.get("/metrics"), "Content-Type: text/plain; version=0.0.4"));
  EXPECT_TRUE(has(b.get("/status"), "Content-Type: application/json"));
  EXPECT_TRUE(has(b.get("/"), "Content-Security-Policy: default-src 'none'"));
}

TEST(AdminServer, SaysWhyItIsNotReady) {
  Bench b;
  b.ready = false;
  const std::string answer = b.get("/readyz");
  EXPECT_EQ(Bench::status(answer), 503);
  EXPECT_TRUE(has(answer, "no map yet"));
  EXPECT_EQ(Bench::status(b.get("/healthz")), 200);
}

TEST(AdminServer, AnswersToLoopbackNamesAlone) {
  const Bench b;
  for (const char* host : {"localhost", "LOCALHOST:9464", "127.0.0.1:1", "127.8.9.1", "[::1]", "[::1]:9464"})
    EXPECT_EQ(Bench::status(b.get("/status", host)), 200) << host;
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.0.2.1", "[2001:db8::1]", "0.0.0.0",
        "localhost:80x", "user@localhost", "127.1", "[::1", "xlocalhost", "[::ffff:192.0.2.1]"})
    EXPECT_EQ(Bench::status(b.get("/status", host)), 403) << host;
  EXPECT_EQ(Bench::status(b.raw("GET /status HTTP/1.1\r\nConnection: close\r\n\r\n")), 400);
  EXPECT_EQ(Bench::status(b.raw("GET /status HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")), 400);
  EXPECT_EQ(Bench::status(b.raw("GET http://evil.example/status HTTP/1.1\r\nHost: localhost\r\n\r\n")), 400);
}

TEST(AdminServer, ReadsNothingButGetAndHead) {
  const Bench b;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    const std::string answer = b.get("/status", "localhost", method);
    EXPECT_EQ(Bench::status(answer), 405) << method;
    EXPECT_TRUE(has(answer, "Allow: GET, HEAD\r\n"));
  }
  const std::string head = b.get("/status", "localhost", "HEAD");
  EXPECT_EQ(Bench::status(head), 200);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  EXPECT_EQ(Bench::status(b.raw("POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000\r\n\r\n" +
                                std::string(20000, 'x'))),
            405);
}

TEST(AdminServer, KeepsAConnectionForFurtherRequestsAndPipelines) {
  const Bench b;
  const int fd = b.connect();
  const std::string one = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  Bench::send(fd, one + one);
  Bench::send(fd, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answers = Bench::read_to_end(fd);
  std::size_t n = 0;
  for (std::size_t at = 0; (at = answers.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++n;
  EXPECT_EQ(n, 3u);
}

TEST(AdminServer, ReadsAHeadThatArrivesInPieces) {
  const Bench b;
  const int fd = b.connect();
  for (const char c : std::string("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    Bench::send(fd, {c});
  EXPECT_EQ(Bench::status(Bench::read_to_end(fd)), 200);
}

TEST(AdminServer, RefusesMalformedAndOversizedHeads) {
  const Bench b;
  EXPECT_EQ(Bench::status(b.raw("nonsense\r\n\r\n")), 400);
  EXPECT_EQ(Bench::status(b.raw("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(9000, 'x') + "\r\n\r\n")),
            431);
}

TEST(AdminServer, ExplainsARoomByItsNameAlone) {
  const Bench b;
  const std::string room(64, 'a');
  const std::string answer = b.get("/explain?room=" + room);
  EXPECT_EQ(Bench::status(answer), 200);
  EXPECT_TRUE(has(answer, RoomName::parse(room)->tag()));
  EXPECT_FALSE(has(answer, room));
  for (const char* query : {"", "?room=", "?room=AA", "?x=1"})
    EXPECT_EQ(Bench::status(b.get(std::string("/explain") + query)), 400) << query;
}

TEST(AdminServer, BoundsItsConnectionsByClosingTheOldest) {
  const Bench b;
  std::vector<int> held;
  for (int i = 0; i < 80; ++i) held.push_back(b.connect());
  EXPECT_EQ(Bench::status(b.get("/healthz")), 200);
  char c = 0;
  EXPECT_EQ(::recv(held[0], &c, 1, 0), 0) << "the oldest is closed";
  for (const int fd : held) ::close(fd);
}

TEST(AdminServer, AnswersWhenTheProcessHasNoDescriptorLeft) {
  const Bench b;
  // The client's sockets are made first: they need descriptors of the same process.
  std::vector<int> sockets;
  for (int i = 0; i < 6; ++i) sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  rlimit tight = before;
  tight.rlim_cur = 256;
  ::setrlimit(RLIMIT_NOFILE, &tight);
  std::vector<int> hog;
  for (int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0; fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC))
    hog.push_back(fd);
  EXPECT_EQ(errno, EMFILE);
  const std::uint16_t port = [&] {
    sockaddr_in a{};
    socklen_t n = sizeof a;
    for (int fd = 3; fd < 64; ++fd) {
      int listening = 0;
      socklen_t size = sizeof listening;
      if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0 &&
          ::getsockname(fd, reinterpret_cast<sockaddr*>(&a), &n) == 0)
        break;
    }
    return a.sin_port;
  }();
  for (const int fd : sockets) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = port;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    timeval limit{5, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ASSERT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
    Bench::send(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::string answer;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = ::recv(fd, buffer, sizeof buffer, 0)) > 0) answer.append(buffer, static_cast<std::size_t>(n));
    EXPECT_EQ(Bench::status(answer), 200);
  }
  for (const int fd : hog) ::close(fd);
  for (const int fd : sockets) ::close(fd);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(AdminServer, NamesAnAddressItCannotListenOn) {
  boost::asio::io_context loop;
  Server first(loop, {}), second(loop, {});
  ASSERT_FALSE(first.listen("localhost", 0));
  EXPECT_TRUE(second.listen("127.0.0.1", first.port()));
  EXPECT_TRUE(second.listen("no address", 0));
}

}  // namespace
}  // namespace tandem::admin

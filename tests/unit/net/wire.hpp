// A real server on a loop of its own, and a blocking client that speaks real TLS and frames to it byte by byte.
#pragma once

#include "tandem/net/server.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <openssl/ssl.h>

namespace tandem::net::wire {

struct Pem {
  std::string chain, key;
};
// Self-signed ECDSA P-256 for localhost, 127.0.0.1 and *.wild.test; not_after in seconds from now.
[[nodiscard]] Pem make_certificate(long valid_seconds = 3600);

// Remembers what was observed, for tests on another thread.
class Recorder final : public Observer {
 public:
  void observe(const Observed& what) override;
  template <class T>
  [[nodiscard]] std::vector<T> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<T> out;
    for (const Observed& o : seen_)
      if (const T* t = std::get_if<T>(&o)) out.push_back(*t);
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Observed> seen_;
};

struct Options {
  Settings net;
  relay::Settings relay;
  bool tls = true;
  bool store_answers = true;
  Options();
};

class TestServer {
 public:
  explicit TestServer(Options options = {});
  ~TestServer();
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] Recorder& observed() { return recorder_; }
  // Runs f(server) on the loop's thread and waits for it.
  void run(const std::function<void(Server&)>& f);
  [[nodiscard]] Counters counters();
  [[nodiscard]] int rooms_asked_for() const { return loads_; }  // of the store
  // Graceful stop; how long it took.
  [[nodiscard]] std::chrono::milliseconds stop();

 private:
  class Entropy final : public RandomSource {
   public:
    void fill(std::span<std::uint8_t> out) override;
  };
  Recorder recorder_;
  std::atomic<int> loads_ = 0;
  Entropy entropy_;
  boost::asio::io_context loop_{1};
  std::unique_ptr<relay::Relay> relay_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

struct Frame {
  unsigned opcode = 0;
  bool fin = true;
  std::string payload;
  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Ending {
  int code = 1006;  // of the close frame; 1005: empty; 1006: none came
  std::string reason;
  bool ended = false;  // the connection was over
  friend bool operator==(const Ending&, const Ending&) = default;
};

class Client {
 public:
  explicit Client(std::uint16_t port, bool tls = true, int receive_buffer = 0);
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) = delete;

  void send(const std::string& bytes);  // gives up silently when the other side is gone
  [[nodiscard]] std::size_t send_some(const std::string& bytes,
                                      std::chrono::milliseconds patience);  // until nothing goes any more
  [[nodiscard]] std::optional<std::string> read(
      std::chrono::milliseconds patience = std::chrono::seconds(5));  // nothing: silence; empty: the end
  void finish_writing();                                              // FIN
  void reset();                                                       // RST
  [[nodiscard]] bool resumed() const;
  [[nodiscard]] SSL* ssl() const { return ssl_; }

  // ---- HTTP: the head and body of one response with Content-Length; empty at the end of the connection
  [[nodiscard]] std::string response();

  // ---- WebSocket
  [[nodiscard]] bool upgrade(const std::string& room, const std::string& behind = "");
  [[nodiscard]] std::string admit(const std::string& room, const std::string& role);  // the result message
  void send_frame(unsigned opcode, const std::string& payload, bool fin = true);
  [[nodiscard]] std::optional<Frame> frame(
      std::chrono::milliseconds patience = std::chrono::seconds(5));  // the next one of any kind
  [[nodiscard]] std::optional<Frame> message(
      std::chrono::milliseconds patience = std::chrono::seconds(5));  // whole; pings answered, pongs skipped
  [[nodiscard]] Ending ending(std::chrono::milliseconds patience = std::chrono::seconds(8), bool answer = true);

 private:
  int fd_ = -1;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  std::string buffer_;
  bool over_ = false;
};

[[nodiscard]] std::string masked(unsigned opcode, const std::string& payload, bool fin = true);
[[nodiscard]] std::string fresh_room();

// Mac and phone of a fresh room.
struct Pair {
  Client mac, phone;
};
[[nodiscard]] Pair pair(const TestServer& server, bool tls = true, int phone_receive_buffer = 0,
                        const std::string& room = fresh_room());

// Waits for a condition, five seconds at most.
[[nodiscard]] bool eventually(const std::function<bool()>& condition);

}  // namespace tandem::net::wire

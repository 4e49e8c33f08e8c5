#include "unit/net/wire.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <csignal>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace tandem::net::wire {
namespace {

std::string pem_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return out;
}

}  // namespace

Pem make_certificate(long valid_seconds) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* cert = X509_new();
  X509_set_version(cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 7);
  X509_gmtime_adj(X509_getm_notBefore(cert), -7200);
  X509_gmtime_adj(X509_getm_notAfter(cert), valid_seconds);
  X509_NAME* name = X509_get_subject_name(cert);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("common.test"), -1, -1,
                             0);
  X509_set_issuer_name(cert, name);
  X509_set_pubkey(cert, key);
  X509_EXTENSION* san =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost,DNS:*.wild.test,IP:127.0.0.1,IP:::1");
  X509_add_ext(cert, san, -1);
  X509_EXTENSION_free(san);
  X509_sign(cert, key, EVP_sha256());
  Pem out;
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, cert);
  out.chain = pem_of(bio);
  bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  out.key = pem_of(bio);
  X509_free(cert);
  EVP_PKEY_free(key);
  return out;
}

void Recorder::observe(const Observed& what) {
  const std::lock_guard lock(mutex_);
  seen_.push_back(what);
}

void TestServer::Entropy::fill(std::span<std::uint8_t> out) { RAND_bytes(out.data(), static_cast<int>(out.size())); }

Options::Options() {
  relay.hostname = "relay.test";
  relay.attest_required = false;
  relay.rendezvous = Duration::zero();
  relay.upgrades_per_minute.reset();
  relay.attests_per_minute.reset();
  relay.sockets_per_client.reset();
}

TestServer::TestServer(Options options) {
  std::signal(SIGPIPE, SIG_IGN);
  relay_ = std::make_unique<relay::Relay>(options.relay, entropy_, recorder_);
  server_ = std::make_unique<Server>(loop_, *relay_, recorder_, options.net);
  // A store that is empty, and always works or never answers.
  server_->on_effect([this, answers = options.store_answers](relay::Effect&& effect) {
    const auto* load = std::get_if<relay::effect::LoadRoom>(&effect);
    if (load != nullptr) ++loads_;
    if (!answers) return;
    if (load != nullptr) server_->dispatch(relay::event::RoomLoaded{load->room, std::nullopt});
    if (const auto* store = std::get_if<relay::effect::StoreRoom>(&effect))
      server_->dispatch(relay::event::Stored{store->id, true});
  });
  if (options.tls) {
    const Pem pem = make_certificate();
    auto certificate = Certificate::parse(pem.chain, pem.key);
    auto context =
        TlsContext::make(std::get<Certificate>(certificate), TlsContext::MinVersion::tls12, make_ticket_keys());
    server_->set_tls(std::get<std::shared_ptr<const TlsContext>>(context));
  }
  port_ = server_->listen("127.0.0.1:0").value();
  thread_ = std::thread([this] {
    const auto work = boost::asio::make_work_guard(loop_);
    loop_.run();
  });
}

TestServer::~TestServer() {
  run([this](Server&) { server_.reset(); });
  loop_.stop();
  thread_.join();
}

void TestServer::run(const std::function<void(Server&)>& f) {
  std::promise<void> done;
  boost::asio::post(loop_, [&] {
    f(*server_);
    done.set_value();
  });
  done.get_future().wait();
}

Counters TestServer::counters() {
  Counters out;
  run([&](Server& server) { out = server.counters(); });
  return out;
}

std::chrono::milliseconds TestServer::stop() {
  auto done = std::make_shared<std::promise<void>>();
  const auto start = std::chrono::steady_clock::now();
  run([&](Server& server) { server.stop([done] { done->set_value(); }); });
  EXPECT_EQ(done->get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

// ---------------------------------------------------------------- client

Client::Client(std::uint16_t port, bool tls, int receive_buffer) {
  fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
  if (receive_buffer != 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  const int one = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  over_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0;
  if (!tls) return;
  context_ = SSL_CTX_new(TLS_client_method());
  ssl_ = SSL_new(context_);
  SSL_set_fd(ssl_, fd_);
  timeval limit{10, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (SSL_connect(ssl_) != 1) over_ = true;
  ERR_clear_error();
}

Client::Client(Client&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      context_(std::exchange(other.context_, nullptr)),
      ssl_(std::exchange(other.ssl_, nullptr)),
      buffer_(std::move(other.buffer_)),
      over_(other.over_) {}

Client::~Client() {
  SSL_free(ssl_);
  SSL_CTX_free(context_);
  if (fd_ >= 0) ::close(fd_);
}

void Client::send(const std::string& bytes) {
  if (ssl_ != nullptr) {
    if (!bytes.empty() && SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) <= 0) ERR_clear_error();
    return;
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}

std::size_t Client::send_some(const std::string& bytes, std::chrono::milliseconds patience) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n =
        ::send(fd_, bytes.data() + at, std::min<std::size_t>(bytes.size() - at, 65536), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      at += static_cast<std::size_t>(n);
      continue;
    }
    pollfd p{fd_, POLLOUT, 0};
    if (::poll(&p, 1, static_cast<int>(patience.count())) == 0) break;
  }
  return at;
}

std::optional<std::string> Client::read(std::chrono::milliseconds patience) {
  if (over_) return "";
  char block[65536];
  if (ssl_ == nullptr || SSL_pending(ssl_) == 0) {
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(patience.count())) == 0) return std::nullopt;
  }
  ssize_t n;
  if (ssl_ != nullptr) {
    n = SSL_read(ssl_, block, sizeof block);
    ERR_clear_error();
  } else {
    n = ::recv(fd_, block, sizeof block, 0);
  }
  if (n <= 0) {
    over_ = true;
    return "";
  }
  return std::string(block, static_cast<std::size_t>(n));
}

void Client::finish_writing() { ::shutdown(fd_, SHUT_WR); }

void Client::reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  ::close(std::exchange(fd_, -1));
  over_ = true;
}

bool Client::resumed() const { return ssl_ != nullptr && SSL_session_reused(ssl_) == 1; }

std::string Client::response() {
  while (true) {
    const std::size_t end = buffer_.find("\r\n\r\n");
    if (end != std::string::npos) {
      std::size_t length = 0;
      if (const std::size_t at = buffer_.find("Content-Length: "); at < end)
        length = std::stoul(buffer_.substr(at + 16));
      if (buffer_.size() >= end + 4 + length) {
        std::string out = buffer_.substr(0, end + 4 + length);
        buffer_.erase(0, out.size());
        return out;
      }
    }
    const auto more = read();
    if (!more || more->empty()) return "";
    buffer_ += *more;
  }
}

bool Client::upgrade(const std::string& room, const std::string& behind) {
  send(
      "GET / HTTP/1.1\r\nHost: relay.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nx-relay-room: " +
      room + "\r\n\r\n" + behind);
  return response().starts_with("HTTP/1.1 101 ");
}

std::string Client::admit(const std::string& room, const std::string& role) {
  if (!upgrade(room)) return "no upgrade";
  send_frame(1, R"({"v":1,"role":")" + role + "\"}");
  if (!message()) return "no nonce";
  send_frame(1, "{}");
  const auto result = message();
  return result ? result->payload : "no result";
}

void Client::send_frame(unsigned opcode, const std::string& payload, bool fin) { send(masked(opcode, payload, fin)); }

std::optional<Frame> Client::frame(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    if (buffer_.size() >= 2) {
      const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(buffer_[i]); };
      std::size_t length = byte(1) & 0x7f, head = 2;
      EXPECT_EQ(byte(1) & 0x80, 0) << "the relay masked a frame";
      EXPECT_EQ(byte(0) & 0x70, 0) << "the relay set a reserved bit";
      const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
      if (more != 0 && buffer_.size() >= 2 + more) {
        length = 0;
        for (std::size_t i = 0; i < more; ++i) length = length << 8 | byte(2 + i);
      }
      head += more;
      if (buffer_.size() >= head && buffer_.size() - head >= length) {
        Frame out{byte(0) & 0x0fu, (byte(0) & 0x80) != 0, buffer_.substr(head, length)};
        buffer_.erase(0, head + length);
        return out;
      }
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    const auto more = read(left);
    if (!more || more->empty()) return std::nullopt;
    buffer_ += *more;
  }
}

std::optional<Frame> Client::message(std::chrono::milliseconds patience) {
  std::optional<Frame> out;
  while (true) {
    const auto next = frame(patience);
    if (!next || next->opcode == 8) return std::nullopt;
    if (next->opcode == 9) send_frame(10, next->payload);
    if (next->opcode >= 8) continue;
    EXPECT_EQ(next->opcode == 0, out.has_value()) << "a lone continuation, or a message in a message";
    if (!out) out = Frame{next->opcode, true, ""};
    out->payload += next->payload;
    if (next->fin) return out;
  }
}

Ending Client::ending(std::chrono::milliseconds patience, bool answer) {
  Ending out;
  const auto until = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < until && !out.ended) {
    const auto next = frame(std::chrono::milliseconds(100));
    if (!next) {
      out.ended = over_;
      continue;
    }
    if (next->opcode != 8) continue;
    out.code = next->payload.size() < 2
                   ? 1005
                   : static_cast<std::uint8_t>(next->payload[0]) << 8 | static_cast<std::uint8_t>(next->payload[1]);
    out.reason = next->payload.size() < 2 ? "" : next->payload.substr(2);
    if (answer) send_frame(8, next->payload.substr(0, 2));
  }
  return out;
}

std::string masked(unsigned opcode, const std::string& payload, bool fin) {
  static const std::string mask = "\x37\xfa\x21\x3d";
  std::string out;
  out.push_back(static_cast<char>((fin ? 0x80u : 0u) | opcode));
  const std::size_t n = payload.size();
  const int bytes = n < 126 ? 0 : n < 65536 ? 2 : 8;
  out.push_back(static_cast<char>(0x80u | (bytes == 0 ? n : bytes == 2 ? 126u : 127u)));
  for (int i = bytes; i-- > 0;) out.push_back(static_cast<char>(n >> (8 * i)));
  out += mask;
  for (std::size_t i = 0; i < n; ++i) out.push_back(static_cast<char>(payload[i] ^ mask[i % 4]));
  return out;
}

std::string fresh_room() {
  std::array<std::uint8_t, 32> bytes{};
  RAND_bytes(bytes.data(), static_cast<int>(bytes.size()));
  return RoomName(bytes).hex();
}

Pair pair(const TestServer& server, bool tls, int phone_receive_buffer, const std::string& room) {
  Pair out{Client(server.port(), tls), Client(server.port(), tls, phone_receive_buffer)};
  EXPECT_EQ(out.mac.admit(room, "mac"), R"({"ok":true})");
  EXPECT_NE(out.phone.admit(room, "phone").find(R"("ok":true)"), std::string::npos);
  return out;
}

bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return condition();
}

}  // namespace tandem::net::wire

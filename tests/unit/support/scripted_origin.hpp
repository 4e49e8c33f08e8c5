// A web server whose every byte a test decides: one thread that accepts on loopback, reads a request head and lets a
// script answer. With TLS on request, by a certificate made on the spot.
#pragma once

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace tandem::test {

// A self-signed certificate for the names, as PEM files in a folder that goes away with it.
class TestCertificate {
 public:
  explicit TestCertificate(const std::string& alt_names) {  // "DNS:localhost,IP:127.0.0.1"
    char pattern[] = "/tmp/tandem-cert-XXXXXX";
    folder_ = ::mkdtemp(pattern);
    key_ = EVP_EC_gen("P-256");
    cert_ = X509_new();
    X509_set_version(cert_, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert_), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert_), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert_), 86400);
    X509_set_pubkey(cert_, key_);
    auto* name = X509_get_subject_name(cert_);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(cert_, name);
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert_, cert_, nullptr, nullptr, 0);
    for (const auto& [nid, value] :
         {std::pair<int, std::string>{NID_subject_alt_name, alt_names}, {NID_basic_constraints, "CA:TRUE"}}) {
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
      X509_add_ext(cert_, extension, -1);
      X509_EXTENSION_free(extension);
    }
    X509_sign(cert_, key_, EVP_sha256());
    std::FILE* f = std::fopen(path().c_str(), "w");
    PEM_write_X509(f, cert_);
    std::fclose(f);
  }
  ~TestCertificate() {
    X509_free(cert_);
    EVP_PKEY_free(key_);
    ::unlink(path().c_str());
    ::rmdir(folder_.c_str());
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  [[nodiscard]] std::string path() const { return folder_ + "/cert.pem"; }
  [[nodiscard]] X509* certificate() const { return cert_; }
  [[nodiscard]] EVP_PKEY* key() const { return key_; }

 private:
  std::string folder_;
  X509* cert_ = nullptr;
  EVP_PKEY* key_ = nullptr;
};

// One accepted connection, plain or TLS; blocking, with a time-out of its own.
class OriginPeer {
 public:
  OriginPeer(int fd, SSL* tls) : fd_(fd), tls_(tls) {}
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const long n = tls_ ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                          : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  std::string read_head() {
    std::string head;
    char c = 0;
    while (head.find("\r\n\r\n") == std::string::npos) {
      const long n = tls_ ? SSL_read(tls_, &c, 1) : ::recv(fd_, &c, 1, 0);
      if (n <= 0) break;
      head.push_back(c);
      if (head[0] == 0x16) break;  // a TLS handshake at a plain port
    }
    return head;
  }
  void goodbye() {  // TLS: close_notify
    if (tls_) SSL_shutdown(tls_);
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
  SSL* tls_;
};

class ScriptedOrigin {
 public:
  // The script gets the request's head and answers on the peer; returning closes the connection.
  using Script = std::function<void(const std::string& head, OriginPeer& peer)>;

  explicit ScriptedOrigin(Script script, const TestCertificate* certificate = nullptr) : script_(std::move(script)) {
    if (certificate != nullptr) {
      context_ = SSL_CTX_new(TLS_server_method());
      SSL_CTX_use_certificate(context_, certificate->certificate());
      SSL_CTX_use_PrivateKey(context_, certificate->key());
    }
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    ::listen(listener_, 64);
    socklen_t length = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~ScriptedOrigin() {
    stop_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    SSL_CTX_free(context_);
  }
  ScriptedOrigin(const ScriptedOrigin&) = delete;
  ScriptedOrigin& operator=(const ScriptedOrigin&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url(const std::string& host = "127.0.0.1",
                                const std::string& target = "/shardmap.json") const {
    return (context_ ? "https://" : "http://") + host + ":" + std::to_string(port_) + target;
  }
  void script(Script script) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] std::vector<std::string> heads() const {
    const std::lock_guard lock(mutex_);
    return heads_;
  }
  [[nodiscard]] std::string server_name() const {  // what SNI asked for last
    const std::lock_guard lock(mutex_);
    return server_name_;
  }

 private:
  void run() {
    while (!stop_) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) continue;
      ++connections_;
      timeval limit{5, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      serve(fd);
      ::close(fd);
    }
  }
  void serve(int fd) {
    SSL* tls = nullptr;
    if (context_ != nullptr) {
      tls = SSL_new(context_);
      SSL_set_fd(tls, fd);
      if (SSL_accept(tls) != 1) {
        SSL_free(tls);
        ERR_clear_error();
        return;
      }
      const char* name = SSL_get_servername(tls, TLSEXT_NAMETYPE_host_name);
      const std::lock_guard lock(mutex_);
      server_name_ = name ? name : "";
    }
    OriginPeer peer(fd, tls);
    const std::string head = peer.read_head();
    Script now;
    {
      const std::lock_guard lock(mutex_);
      heads_.push_back(head);
      now = script_;
    }
    now(head, peer);
    SSL_free(tls);
  }

  Script script_;
  SSL_CTX* context_ = nullptr;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  std::string server_name_;
  std::thread thread_;
};

inline std::string http_answer(std::string_view body, std::string_view status = "200 OK",
                               std::string_view headers = {}) {
  return "HTTP/1.1 " + std::string(status) + "\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace tandem::test

#include "tandem/app/map_http.hpp"

#include "app/map_http_connection.hpp"
#include "tandem/app/map_error.hpp"

#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <set>
#include <sys/socket.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace tandem::app {

namespace {

// Most clients ask once in ten seconds and keep their connection meanwhile. Where many are open, a connection ends
// behind its answer, so that those who wait for nothing keep nobody out.
constexpr std::size_t kMaxConnections = 512, kMaxWaiting = 128;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

Address address_of(const HttpPlace& place) {
  Address a;
  if (place.ip.v6) {
    auto* in6 = reinterpret_cast<sockaddr_in6*>(&a.storage);
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(place.port);
    std::memcpy(&in6->sin6_addr, place.ip.bytes.data(), 16);
    a.size = sizeof *in6;
  } else {
    auto* in = reinterpret_cast<sockaddr_in*>(&a.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(place.port);
    std::memcpy(&in->sin_addr, place.ip.bytes.data(), 4);
    a.size = sizeof *in;
  }
  return a;
}

using FileTime = std::filesystem::file_time_type;

FileTime changed_at(const std::string& file) {
  std::error_code ignored;
  return std::filesystem::last_write_time(file, ignored);
}

}  // namespace

std::optional<HttpPlace> parse_http_place(std::string_view listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon == std::string_view::npos) return {};
  HttpPlace place;
  const std::string_view port = listen.substr(colon + 1);
  const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), place.port);
  if (port.empty() || ec != std::errc{} || end != port.data() + port.size()) return {};
  std::string_view host = listen.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto ip = config::IpAddress::parse(host == "localhost" ? "127.0.0.1" : host);
  if (!ip) return {};
  place.ip = *ip;
  return place;
}

struct HttpServer::Impl {
  HttpPlace place;
  HttpHandler handler;
  int listener = -1;
  std::shared_ptr<const net::TlsContext> tls;
  std::pair<FileTime, FileTime> files_changed;  // certificate, key: as last looked at

  std::mutex mutex;
  std::condition_variable emptied;
  std::set<int> live;  // open connections, for the end to cut

  [[nodiscard]] std::pair<FileTime, FileTime> look_at_files() const {
    return {changed_at(place.certificate), changed_at(place.private_key)};
  }

  void load_certificate() {
    files_changed = look_at_files();
    auto certificate = net::Certificate::load(place.certificate, place.private_key);
    if (const auto* fault = std::get_if<net::Certificate::Fault>(&certificate))
      throw usage_error("--certificate", place.certificate, fault->message);
    auto context = net::TlsContext::make(std::get<net::Certificate>(certificate), net::TlsContext::MinVersion::tls12,
                                         net::make_ticket_keys());
    if (const auto* fault = std::get_if<net::Certificate::Fault>(&context))
      throw usage_error("--certificate", place.certificate, fault->message);
    tls = std::get<std::shared_ptr<const net::TlsContext>>(context);
  }

  // A renewed certificate is taken by the next connection; one that cannot be used, say before its key has come, is
  // looked at again once either file has changed.
  void renew_certificate() {
    if (!tls || look_at_files() == files_changed) return;
    try {
      load_certificate();
    } catch (const MapError&) {
      return;
    }
  }

  void serve(int fd) {
    {
      const std::lock_guard guard(mutex);
      if (live.size() >= kMaxConnections) {
        ::close(fd);
        return;
      }
      live.insert(fd);
    }
    renew_certificate();
    try {
      std::thread([this, fd, context = tls] {
        {
          HttpConnection connection(fd, context.get());
          connection.run(handler, [this] {
            const std::lock_guard guard(mutex);
            return live.size() <= kMaxWaiting;
          });
        }
        end(fd);
      }).detach();
    } catch (const std::system_error&) {  // no more threads: this one is refused, the next may find some
      end(fd);
    }
  }

  void end(int fd) {
    const std::lock_guard guard(mutex);
    ::shutdown(fd, SHUT_RDWR);
    ::close(fd);
    live.erase(fd);
    emptied.notify_all();
  }

  void finish() {
    std::unique_lock guard(mutex);
    for (const int fd : live) ::shutdown(fd, SHUT_RDWR);
    emptied.wait(guard, [this] { return live.empty(); });
  }
};

HttpServer::HttpServer(HttpPlace place, HttpHandler handler) : impl_(std::make_unique<Impl>()) {
  impl_->place = std::move(place);
  impl_->handler = std::move(handler);
  if (!impl_->place.certificate.empty()) impl_->load_certificate();
  const Address address = address_of(impl_->place);
  impl_->listener = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(impl_->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (impl_->listener < 0 ||
      ::bind(impl_->listener, reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
      ::listen(impl_->listener, 128) != 0) {
    const std::string why = std::generic_category().message(errno);
    ::close(impl_->listener);
    throw MapError("store_failed",
                   "--listen: port " + std::to_string(impl_->place.port) + " cannot be listened on: " + why,
                   {{"value", impl_->place.port}});
  }
  Address bound;
  bound.size = sizeof bound.storage;
  ::getsockname(impl_->listener, reinterpret_cast<sockaddr*>(&bound.storage), &bound.size);
  impl_->place.port =
      ntohs(bound.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound.storage)->sin6_port
                                                : reinterpret_cast<sockaddr_in*>(&bound.storage)->sin_port);
}

HttpServer::~HttpServer() {
  ::close(impl_->listener);
  impl_->finish();
}

std::string HttpServer::origin() const {
  const std::string host = impl_->place.ip.v6 ? "[" + impl_->place.ip.text() + "]" : impl_->place.ip.text();
  return (impl_->tls ? "https://" : "http://") + host + ":" + std::to_string(impl_->place.port);
}

void HttpServer::run(const std::function<bool()>& stopped) {
  while (!stopped()) {
    pollfd waiting{impl_->listener, POLLIN, 0};
    if (::poll(&waiting, 1, 200) <= 0) continue;
    const int fd = ::accept4(impl_->listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) {
      impl_->serve(fd);
    } else if (errno != EINTR) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // out of descriptors: do not spin
    }
  }
}

}  // namespace tandem::app

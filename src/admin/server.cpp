#include "tandem/admin/server.hpp"

#include "session.hpp"
#include "spare_descriptors.hpp"

#include <list>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tandem::admin {

namespace asio = boost::asio;
using asio::ip::tcp;
using Error = boost::system::error_code;

namespace {

constexpr std::size_t kMaxSessions = 64;
constexpr int kAcceptsPerTurn = 16;
constexpr auto kPauseWithoutDescriptors = std::chrono::milliseconds(50);

bool no_descriptors(int error) { return error == EMFILE || error == ENFILE; }

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
  asio::io_context& loop;
  AdminSource source;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  SpareDescriptors spare;
  std::list<std::shared_ptr<Session>> sessions;  // oldest first

  Impl(asio::io_context& l, AdminSource s) : loop(l), source(std::move(s)), acceptor(l), pause(l) {}

  void wait() {
    acceptor.async_wait(tcp::acceptor::wait_read, [weak = weak_from_this()](Error ec) {
      const auto self = weak.lock();
      if (self && !ec && self->acceptor.is_open()) self->accept();
    });
  }

  void accept() {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      bool on_reserve = false;
      int fd = ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0 && no_descriptors(errno)) {
        if (!spare.give_up()) return rest();
        on_reserve = true;
        fd = ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      }
      if (fd < 0) {
        const int error = errno;
        if (on_reserve) spare.refill();
        if (error == ECONNABORTED || error == EINTR) continue;
        if (error == EAGAIN || error == EWOULDBLOCK) break;
        return rest();
      }
      open(fd, on_reserve);
    }
    wait();
  }

  // Nothing can be accepted now: trying again at once would spin, for the listener stays readable.
  void rest() {
    pause.expires_after(kPauseWithoutDescriptors);
    pause.async_wait([weak = weak_from_this()](Error ec) {
      const auto self = weak.lock();
      if (self && !ec && self->acceptor.is_open()) self->accept();
    });
  }

  void open(int fd, bool on_reserve) {
    tcp::socket socket(loop);
    Error ec;
    socket.assign(acceptor.local_endpoint(ec).protocol(), fd, ec);
    if (ec) {
      ::close(fd);
      return;
    }
    socket.set_option(tcp::no_delay(true), ec);
    if (sessions.size() >= kMaxSessions) close_oldest();
    auto session =
        std::make_shared<Session>(std::move(socket), source, on_reserve, [weak = weak_from_this()](Session* ended) {
          if (const auto self = weak.lock()) self->ended(ended);
        });
    sessions.push_back(session);
    session->start();
  }

  void close_oldest() {
    const auto oldest = sessions.front();  // ended() takes it off the list
    oldest->close();
  }

  void ended(const Session* session) {
    spare.refill();
    sessions.remove_if([session](const auto& s) { return s.get() == session; });
  }
};

Server::Server(asio::io_context& loop, AdminSource source) : impl_(std::make_shared<Impl>(loop, std::move(source))) {}
Server::~Server() { close(); }

Error Server::listen(const std::string& address, std::uint16_t port) {
  Error ec;
  const auto ip = address == "localhost" ? asio::ip::address(asio::ip::address_v4::loopback())
                                         : asio::ip::make_address(address, ec);
  if (ec) return ec;
  auto& a = impl_->acceptor;
  const tcp::endpoint endpoint(ip, port);
  a.open(endpoint.protocol(), ec);
  if (!ec) a.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) a.bind(endpoint, ec);
  if (!ec) a.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) a.non_blocking(true, ec);
  if (ec) {
    Error ignored;
    a.close(ignored);
    return ec;
  }
  impl_->wait();
  return {};
}

std::uint16_t Server::port() const {
  Error ec;
  return impl_->acceptor.local_endpoint(ec).port();
}

void Server::close() {
  Error ignored;
  impl_->acceptor.close(ignored);
  impl_->pause.cancel();
  while (!impl_->sessions.empty()) impl_->close_oldest();
}

}  // namespace tandem::admin

#include "net/listener.hpp"

#include "net/loop.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace tandem::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 4096;
constexpr int kAcceptedAtOnce = 16;  // then others have their turn
constexpr std::uint32_t kSpareDescriptors = 16;

// The first descriptor that is kept back for others; descriptors are given out lowest first.
int first_spare() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT32_MAX;
  const auto all = static_cast<std::uint32_t>(std::min<rlim_t>(limit.rlim_cur, INT32_MAX));
  return static_cast<int>(all - std::min(kSpareDescriptors, all / 4));
}

std::optional<tcp::endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (fault != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  error_code error;
  const asio::ip::address address = asio::ip::make_address(std::string(host), error);
  if (error || address.is_v6() != bracketed) return std::nullopt;
  return tcp::endpoint(address, port);
}

Address address_of(const sockaddr_storage& from) noexcept {
  if (from.ss_family == AF_INET) {
    std::array<std::uint8_t, 4> octets{};
    std::memcpy(octets.data(), reinterpret_cast<const char*>(&from) + offsetof(sockaddr_in, sin_addr), octets.size());
    return Address::v4(octets);
  }
  std::array<std::uint8_t, 16> octets{};
  if (from.ss_family == AF_INET6)
    std::memcpy(octets.data(), reinterpret_cast<const char*>(&from) + offsetof(sockaddr_in6, sin6_addr), octets.size());
  return Address::v6(octets);
}

void set_option(int descriptor, int level, int name, int value) {
  ::setsockopt(descriptor, level, name, &value, sizeof value);  // without it the socket works, only less well
}

void tune(int descriptor) {
  set_option(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 64 * 1024);
}

void bound_receiving(int descriptor, const Settings& settings) {
  set_option(descriptor, SOL_SOCKET, SO_RCVBUF,
             static_cast<int>(settings.socket_buffer_bytes / 2));  // the kernel doubles it
}

}  // namespace

boost::system::result<std::unique_ptr<Listener>> Listener::open(Loop& loop, std::string_view address) {
  const auto endpoint = parse_endpoint(address);
  if (!endpoint) return error_code(asio::error::invalid_argument);
  Acceptor acceptor(loop.io.get_executor());
  error_code error;
  acceptor.open(endpoint->protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint->address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
  if (!error) acceptor.bind(*endpoint, error);
  // Before listening: the window that a connection may ever offer is agreed on with its first packet.
  if (!error) bound_receiving(acceptor.native_handle(), loop.settings);
  if (!error) acceptor.listen(kBacklog, error);
  if (!error) acceptor.native_non_blocking(true, error);
  if (error) return error;
  return std::unique_ptr<Listener>(new Listener(std::make_shared<State>(loop, std::move(acceptor))));
}

boost::system::result<std::unique_ptr<Listener>> Listener::adopt(Loop& loop, int descriptor) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  int listening = 0;
  socklen_t flag_size = sizeof listening;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      ::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &flag_size) != 0) {
    return error_code(errno, boost::system::system_category());
  }
  if ((bound.ss_family != AF_INET && bound.ss_family != AF_INET6) || listening == 0)
    return error_code(asio::error::invalid_argument);
  Acceptor acceptor(loop.io.get_executor());
  error_code error;
  acceptor.assign(bound.ss_family == AF_INET ? tcp::v4() : tcp::v6(), descriptor, error);
  if (!error) acceptor.native_non_blocking(true, error);
  if (error) return error;
  bound_receiving(descriptor, loop.settings);
  return std::unique_ptr<Listener>(new Listener(std::make_shared<State>(loop, std::move(acceptor))));
}

std::uint16_t Listener::port() const {
  error_code ignored;
  return state_->acceptor.local_endpoint(ignored).port();
}

void Listener::start() { arm(state_); }

void Listener::stop() {
  state_->open = false;
  error_code ignored;
  state_->acceptor.close(ignored);
}

void Listener::arm(const std::shared_ptr<State>& state) {
  if (!state->open || state->paused || state->armed) return;
  state->armed = true;
  state->acceptor.async_wait(Acceptor::wait_read, [state](error_code error) {
    state->armed = false;
    if (error || !state->open) return;
    on_ready(state);
  });
}

void Listener::on_ready(const std::shared_ptr<State>& state) {
  Loop& loop = state->loop;
  const Loop::Turn turn(loop);
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    const int descriptor = ::accept4(state->acceptor.native_handle(), reinterpret_cast<sockaddr*>(&from), &size,
                                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) return pause(*state);
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      continue;  // that one was gone before it was here
    }
    const Address remote = address_of(from);
    bound_receiving(descriptor, loop.settings);
    tune(descriptor);
    Socket socket(loop.io.get_executor());
    error_code error;
    socket.assign(from.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), descriptor, error);
    if (error) {
      ::close(descriptor);
      continue;
    }
    loop.accepted(std::move(socket), remote);
    if (descriptor >= first_spare()) return pause(*state);
  }
  arm(state);
}

void Listener::pause(State& state) {
  if (state.paused) return;
  state.paused = true;
  if (std::exchange(state.told, true)) return;  // a flood comes and goes many times a second: it is told once
  state.loop.observe(observed::DescriptorsExhausted{true});
}

void Listener::try_again() {
  if (!state_->paused || !state_->open) return;
  const int probe = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (probe >= 0) ::close(probe);
  if (probe < 0 || probe >= first_spare()) return;
  state_->paused = false;
  arm(state_);
}

void Listener::tell() {
  if (!state_->paused && std::exchange(state_->told, false))
    state_->loop.observe(observed::DescriptorsExhausted{false});
}

}  // namespace tandem::net

#include "tandem/net/server.hpp"

#include "net/loop.hpp"

#include <utility>

namespace tandem::net {

Server::Server(boost::asio::io_context& loop, relay::Relay& relay, Observer& observer, Settings settings)
    : loop_(std::make_shared<Loop>(loop, relay, observer, std::move(settings))) {
  loop_->start();
}

Server::~Server() { loop_->shut(); }

void Server::set_tls(std::shared_ptr<const TlsContext> context) { loop_->tls = std::move(context); }

boost::system::result<std::uint16_t> Server::listen(std::string_view address) {
  auto opened = Listener::open(*loop_, address);
  if (!opened) return opened.error();
  const std::uint16_t port = (*opened)->port();
  (*opened)->start();
  loop_->listeners.push_back(std::move(*opened));
  return port;
}

boost::system::error_code Server::adopt(int descriptor) {
  auto adopted = Listener::adopt(*loop_, descriptor);
  if (!adopted) return adopted.error();
  (*adopted)->start();
  loop_->listeners.push_back(std::move(*adopted));
  return {};
}

void Server::dispatch(const relay::Event& event) { loop_->dispatch(event); }
void Server::on_effect(std::function<void(relay::Effect&&)> take) { loop_->other_effect = std::move(take); }
void Server::update(Settings settings) { loop_->update(std::move(settings)); }
void Server::stop(std::function<void()> done) { loop_->stop(std::move(done)); }

Counters Server::counters() const {
  Counters out = loop_->counters;
  out.handshaking = out.connections - out.websockets;
  return out;
}

MemoryBounds memory_bounds(const Settings& settings, bool tls) noexcept {
  // Measured: what OpenSSL holds for an idle connection, and what it adds while a record is in the making each way.
  constexpr std::uint64_t kTlsIdle = 14 * 1024, kTlsRecords = 2 * 17 * 1024, kConnection = 2 * 1024;
  const std::uint64_t parked = kConnection + (tls ? kTlsIdle : 0);
  // One read may wait to be sent, encrypted anew; a vector that grows holds twice its content at worst.
  const std::uint64_t waiting = 2ull * settings.splice_buffer_bytes + 2ull * 16 * 1024;
  return {parked, parked + waiting + (tls ? kTlsRecords : 0)};
}

}  // namespace tandem::net

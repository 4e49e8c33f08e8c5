#include "app/fleet_map_server.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

namespace tandem::app {

namespace asio = boost::asio;
using asio::ip::tcp;

struct FleetMapServer::Visit {
  explicit Visit(tcp::socket s) : socket(std::move(s)) {}
  tcp::socket socket;
  std::string head, answer;
};

FleetMapServer::FleetMapServer(asio::io_context& loop)
    : acceptor_(loop, {asio::ip::address_v4::loopback(), 0}), place_(acceptor_.local_endpoint()) {
  accept();
}

void FleetMapServer::publish(const shard::ShardMap& map) {
  published_.push_back({map.to_json(), "\"" + std::to_string(map.version().value) + "\""});
}

void FleetMapServer::set_down(bool down) {
  if (down == std::exchange(down_, down)) return;
  if (down) {  // the port stays bound, or a connection of somebody's could be given it meanwhile
    acceptor_.close();
    acceptor_.open(place_.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(place_);
  } else {
    acceptor_.listen();
    accept();
  }
}

std::string FleetMapServer::url() const {
  return "http://127.0.0.1:" + std::to_string(place_.port()) + "/shardmap.json";
}

void FleetMapServer::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || down_) return;
    if (!error) read(std::make_shared<Visit>(std::move(socket)));
    accept();
  });
}

void FleetMapServer::read(const std::shared_ptr<Visit>& visit) {
  asio::async_read_until(visit->socket, asio::dynamic_buffer(visit->head, 16 * 1024), "\r\n\r\n",
                         [this, visit](const boost::system::error_code& error, std::size_t) {
                           if (error) return;
                           visit->answer = answer(visit->head);
                           asio::async_write(visit->socket, asio::buffer(visit->answer),
                                             [visit](const boost::system::error_code&, std::size_t) {});
                         });
}

const FleetMapServer::Copy& FleetMapServer::next_copy() {
  std::size_t behind = copies_ == FleetCopies::lagging ? 1 : 0;
  if (copies_ == FleetCopies::alternating) behind = std::array<std::size_t, 3>{1, 2, 0}[turn_++ % 3];
  return published_[published_.size() - 1 - std::min(behind, published_.size() - 1)];
}

std::string FleetMapServer::answer(std::string_view head) {
  const Copy& copy = next_copy();
  const bool known = head.find("If-None-Match: " + copy.etag + "\r\n") != std::string_view::npos;
  const std::string common = "ETag: " + copy.etag + "\r\nCache-Control: max-age=5\r\nConnection: close\r\n";
  if (known) return "HTTP/1.1 304 Not Modified\r\n" + common + "\r\n";
  return "HTTP/1.1 200 OK\r\n" + common +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(copy.body.size()) + "\r\n\r\n" +
         copy.body;
}

}  // namespace tandem::app

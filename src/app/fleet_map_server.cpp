#include "app/fleet_map_server.hpp"

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

FleetMapServer::FleetMapServer(asio::io_context& loop) : acceptor_(loop, {asio::ip::address_v4::loopback(), 0}) {
  accept();
}

void FleetMapServer::publish(const shard::ShardMap& map) {
  body_ = map.to_json();
  etag_ = "\"" + std::to_string(map.version().value) + "\"";
}

std::string FleetMapServer::url() const {
  return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + "/shardmap.json";
}

void FleetMapServer::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) read(std::make_shared<Visit>(std::move(socket)));
    accept();
  });
}

void FleetMapServer::read(const std::shared_ptr<Visit>& visit) {
  asio::async_read_until(visit->socket, asio::dynamic_buffer(visit->head, 16 * 1024), "\r\n\r\n",
                         [this, visit](const boost::system::error_code& error, std::size_t) {
                           if (error) return;
                           ++served_;
                           visit->answer = answer(visit->head);
                           asio::async_write(visit->socket, asio::buffer(visit->answer),
                                             [visit](const boost::system::error_code&, std::size_t) {});
                         });
}

std::string FleetMapServer::answer(std::string_view head) const {
  const bool known = head.find("If-None-Match: " + etag_ + "\r\n") != std::string_view::npos;
  const std::string common = "ETag: " + etag_ + "\r\nCache-Control: max-age=5\r\nConnection: close\r\n";
  if (known) return "HTTP/1.1 304 Not Modified\r\n" + common + "\r\n";
  return "HTTP/1.1 200 OK\r\n" + common +
         "Content-Type: application/json\r\nContent-Length: " + std::to_string(body_.size()) + "\r\n\r\n" + body_;
}

}  // namespace tandem::app

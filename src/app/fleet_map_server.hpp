// Serves one shard map on loopback by plain HTTP, as a CDN would: ETag, max-age=5, nothing else.
#pragma once

#include "tandem/shard/map.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tandem::app {

class FleetMapServer {
 public:
  explicit FleetMapServer(boost::asio::io_context& loop);

  void publish(const shard::ShardMap& map);
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::uint64_t served() const noexcept { return served_; }

 private:
  struct Visit;
  void accept();
  void read(const std::shared_ptr<Visit>& visit);
  [[nodiscard]] std::string answer(std::string_view head) const;

  boost::asio::ip::tcp::acceptor acceptor_;
  std::string body_, etag_;
  std::uint64_t served_ = 0;
};

}  // namespace tandem::app

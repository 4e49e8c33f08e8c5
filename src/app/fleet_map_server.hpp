// Serves the shard map on loopback by plain HTTP, as a CDN would: ETag, max-age=5, nothing else. Like a CDN it can
// serve copies that are behind, different ones by turns, or be away.
#pragma once

#include "tandem/shard/map.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace tandem::app {

// Which of the published versions an answer holds.
enum class FleetCopies : std::uint8_t {
  newest,
  lagging,      // the one before the newest
  alternating,  // by turns the one before the newest, the one before that, and the newest
};

class FleetMapServer {
 public:
  explicit FleetMapServer(boost::asio::io_context& loop);

  void publish(const shard::ShardMap& map);
  void serve(FleetCopies copies) { copies_ = copies; }
  void set_down(bool down);  // connections are refused
  [[nodiscard]] std::string url() const;

 private:
  struct Visit;
  struct Copy {
    std::string body, etag;
  };
  void accept();
  void read(const std::shared_ptr<Visit>& visit);
  [[nodiscard]] std::string answer(std::string_view head);
  [[nodiscard]] const Copy& next_copy();

  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::ip::tcp::endpoint place_;
  std::vector<Copy> published_;
  FleetCopies copies_ = FleetCopies::newest;
  std::uint64_t turn_ = 0;
  bool down_ = false;
};

}  // namespace tandem::app

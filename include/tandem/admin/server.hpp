// The loopback pages of 3-operations 3.4 over HTTP/1.1: /metrics, /healthz, /readyz, /status, /explain and the page
// itself. Only GET and HEAD; only a Host that is loopback, so that no web page can read it through a name of its own
// (DNS rebinding).
//
// Connections are bounded in number and time. Two descriptors are kept in reserve for them: the pages answer when the
// process has no descriptor left. Single-threaded, on the loop; the source's functions are called from there and may
// not throw.
#pragma once

#include "tandem/admin/status.hpp"
#include "tandem/core/ids.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/system/error_code.hpp>

namespace boost::asio {
class io_context;
}

namespace tandem::admin {

struct AdminSource {
  std::function<std::string()> metrics;
  std::function<Status()> status;
  std::function<relay::Explanation(const RoomName&)> explain;
};

class Server {
 public:
  Server(boost::asio::io_context& loop, AdminSource source);  // the loop outlives the server
  ~Server();                                                  // closes everything at once
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // address: a loopback literal without brackets, or "localhost". Error: the address cannot be listened on.
  [[nodiscard]] boost::system::error_code listen(const std::string& address, std::uint16_t port);
  [[nodiscard]] std::uint16_t port() const;  // the one listened on, where 0 was asked for
  void close();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// Whether a Host header names this machine: localhost, 127.x.y.z or [::1], with or without a port.
[[nodiscard]] bool is_loopback_authority(std::string_view host_header);

}  // namespace tandem::admin

// What we and systemd say to each other: readiness, status, watchdog, and the listening sockets it holds for us
// (3-operations 3.3). Everything is a no-op where there is no NOTIFY_SOCKET.
#pragma once

#include "tandem/core/time.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tandem::app {

class ServiceManager {
 public:
  ServiceManager();

  void ready() const;
  void status(const std::string& one_line) const;
  void reloading() const;  // then ready() again
  void stopping() const;
  void alive() const;  // the watchdog's food

  // How often alive() is due: half of what systemd waits; nothing where no watchdog is set.
  [[nodiscard]] std::optional<Duration> watchdog_interval() const noexcept { return watchdog_; }
  // Descriptors of listening stream sockets passed to us, in order; empty where none were. They take the place of
  // `listen`.
  [[nodiscard]] const std::vector<int>& listening_sockets() const noexcept { return sockets_; }

 private:
  std::optional<Duration> watchdog_;
  std::vector<int> sockets_;
};

}  // namespace tandem::app

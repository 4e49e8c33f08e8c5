#include "tandem/app/service_manager.hpp"

#include <cinttypes>
#include <cstdint>
#include <sys/socket.h>
#include <time.h>

#include <systemd/sd-daemon.h>

namespace tandem::app {

ServiceManager::ServiceManager() {
  std::uint64_t watchdog_usec = 0;
  if (sd_watchdog_enabled(0, &watchdog_usec) > 0 && watchdog_usec > 0)
    watchdog_ = std::chrono::microseconds(watchdog_usec / 2);
  const int passed = sd_listen_fds(1);
  for (int i = 0; i < passed; ++i) {
    const int fd = SD_LISTEN_FDS_START + i;
    if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) > 0) sockets_.push_back(fd);
  }
}

void ServiceManager::ready() const { sd_notify(0, "READY=1"); }

void ServiceManager::status(const std::string& one_line) const { sd_notifyf(0, "STATUS=%s", one_line.c_str()); }

void ServiceManager::reloading() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto usec = static_cast<std::uint64_t>(now.tv_sec) * 1000000u + static_cast<std::uint64_t>(now.tv_nsec) / 1000u;
  sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, usec);
}

void ServiceManager::stopping() const { sd_notify(0, "STOPPING=1"); }

void ServiceManager::alive() const { sd_notify(0, "WATCHDOG=1"); }

}  // namespace tandem::app

#include "log/fd_sink.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::log {

FdSink::FdSink(int fd) : fd_(fd) {
  struct stat info{};
  is_socket_ = ::fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

void FdSink::sink_it_(const spdlog::details::log_msg& msg) {
  std::string line;
  line.reserve(msg.payload.size() + 2);
  if (mid_line_) line += '\n';
  line.append(msg.payload.data(), msg.payload.size());
  line += '\n';
  if (!write_whole(line)) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    unreported_.fetch_add(1, std::memory_order_relaxed);
  }
}

bool FdSink::write_whole(std::string_view line) {
  // Lines are shorter than PIPE_BUF, so a pipe that polls writable takes one whole. The descriptor's own flags are left
  // alone: stderr may be shared with other programs.
  const std::string_view whole = line;
  for (int tries = 0; tries < 4; ++tries) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) <= 0 || (ready.revents & POLLOUT) == 0) break;
    const ssize_t n = is_socket_ ? ::send(fd_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                 : ::write(fd_, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    line.remove_prefix(static_cast<std::size_t>(n));
    if (line.empty()) {
      mid_line_ = false;
      return true;
    }
  }
  if (line.size() < whole.size()) mid_line_ = true;
  return false;
}

}  // namespace tandem::log

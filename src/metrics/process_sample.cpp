#include "process_sample.hpp"

#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::metrics {

namespace {

constexpr std::uint64_t kCountedConnections = 4000;  // up to here reading the folder takes about a millisecond
constexpr double kOtherDescriptors = 24;  // listeners, the store, the log, epoll: a guess, beside so many sockets

double boot_time_seconds() {
  timespec wall{}, since_boot{};
  ::clock_gettime(CLOCK_REALTIME, &wall);
  ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  const auto seconds = [](const timespec& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
  };
  return seconds(wall) - seconds(since_boot);
}

double count_descriptors(std::uint64_t connections, double at_most) {
  struct stat s{};
  if (::stat("/proc/self/fd", &s) == 0 && s.st_size > 0) return static_cast<double>(s.st_size);
  if (connections > kCountedConnections) return static_cast<double>(connections) + kOtherDescriptors;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return at_most;  // there is none left to count with
  double n = -1;                          // the folder's own
  while (const dirent* entry = ::readdir(folder))
    if (entry->d_name[0] != '.') ++n;
  ::closedir(folder);
  return n;
}

}  // namespace

ProcessReader::ProcessReader() : stat_fd_(::open("/proc/self/stat", O_RDONLY | O_CLOEXEC)) {}
ProcessReader::~ProcessReader() {
  if (stat_fd_ >= 0) ::close(stat_fd_);
}

ProcessSample ProcessReader::sample(std::uint64_t connections) const {
  ProcessSample out;
  std::array<char, 2048> buffer{};
  const ssize_t length = ::pread(stat_fd_, buffer.data(), buffer.size() - 1, 0);
  const std::string stat(buffer.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  // proc(5): fields are counted from behind the name, which may hold spaces and brackets.
  if (const auto name_end = stat.rfind(')'); name_end != std::string::npos) {
    const double tick = static_cast<double>(::sysconf(_SC_CLK_TCK));
    const char* at = stat.c_str() + name_end + 4;  // behind ") S "
    std::array<double, 21> field{};                // ppid is field 4 of the manual
    for (auto& f : field) {
      char* end = nullptr;
      f = std::strtod(at, &end);
      at = end;
    }
    out.cpu_seconds = (field[10] + field[11]) / tick;                               // utime 14, stime 15
    out.threads = field[16];                                                        // 20
    out.start_time_seconds = boot_time_seconds() + field[18] / tick;                // 22
    out.virtual_bytes = field[19];                                                  // 23
    out.resident_bytes = field[20] * static_cast<double>(::sysconf(_SC_PAGESIZE));  // 24
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) out.max_fds = static_cast<double>(limit.rlim_cur);
  out.open_fds = count_descriptors(connections, out.max_fds);
  return out;
}

}  // namespace tandem::metrics

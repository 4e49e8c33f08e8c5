// The standard process_* metrics, read from /proc.
#pragma once

#include <cstdint>

namespace tandem::metrics {

struct ProcessSample {
  double cpu_seconds = 0, start_time_seconds = 0;
  double resident_bytes = 0, virtual_bytes = 0;
  double open_fds = 0, max_fds = 0;
  double threads = 0;
};

// Reads this process. The one file it needs stays open, so that a process without a descriptor left can still be looked
// at.
class ProcessReader {
 public:
  ProcessReader();
  ~ProcessReader();
  ProcessReader(const ProcessReader&) = delete;
  ProcessReader& operator=(const ProcessReader&) = delete;

  // connections: how many sockets are open, for where counting every descriptor would stall the loop. Counting is exact
  // below a few thousand, and always on kernels that tell the count of /proc/self/fd (Linux 6.2).
  [[nodiscard]] ProcessSample sample(std::uint64_t connections) const;

 private:
  int stat_fd_;
};

}  // namespace tandem::metrics

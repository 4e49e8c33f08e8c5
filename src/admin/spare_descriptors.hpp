// Descriptors held open for the day when the process has none left: one is given up so that a connection can be
// accepted, and taken back when a connection closes. Both happen within one turn of the loop, so that nobody else gets
// the number between.
#pragma once

#include <array>
#include <fcntl.h>
#include <unistd.h>

namespace tandem::admin {

class SpareDescriptors {
 public:
  SpareDescriptors() { refill(); }
  ~SpareDescriptors() {
    while (give_up()) {
    }
  }
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

  // False where none is left.
  bool give_up() noexcept {
    for (int& fd : fds_) {
      if (fd < 0) continue;
      ::close(fd);
      fd = -1;
      return true;
    }
    return false;
  }
  void refill() noexcept {
    for (int& fd : fds_)
      if (fd < 0) fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  }

 private:
  std::array<int, 2> fds_{-1, -1};
};

}  // namespace tandem::admin

// An open file or socket that is closed with its scope.
#pragma once

#include <unistd.h>

namespace tandem::app {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}  // below 0: none
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace tandem::app

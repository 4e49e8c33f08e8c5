// Notices that the certificate or key file was replaced: by rename, by a flipped symbolic link, or written in place.
#pragma once

#include <array>
#include <string>
#include <sys/stat.h>

namespace tandem::app {

class CertificateFiles {
 public:
  CertificateFiles(std::string certificate, std::string private_key);

  // True where either file differs from the last call (or from construction). A few microseconds: two stat calls.
  [[nodiscard]] bool changed();

  [[nodiscard]] const std::string& certificate() const noexcept { return paths_[0]; }
  [[nodiscard]] const std::string& private_key() const noexcept { return paths_[1]; }

 private:
  struct Mark {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = -1;
    timespec modified{};
  };
  static Mark mark(const std::string& path);

  std::array<std::string, 2> paths_;
  std::array<Mark, 2> marks_;
};

}  // namespace tandem::app

#include "tandem/app/certificate_files.hpp"

#include <utility>

namespace tandem::app {

CertificateFiles::CertificateFiles(std::string certificate, std::string private_key)
    : paths_{std::move(certificate), std::move(private_key)}, marks_{mark(paths_[0]), mark(paths_[1])} {}

bool CertificateFiles::changed() {
  bool any = false;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const Mark now = mark(paths_[i]);
    Mark& was = marks_[i];
    any = any || now.device != was.device || now.inode != was.inode || now.size != was.size ||
          now.modified.tv_sec != was.modified.tv_sec || now.modified.tv_nsec != was.modified.tv_nsec;
    was = now;
  }
  return any;
}

CertificateFiles::Mark CertificateFiles::mark(const std::string& path) {
  struct stat s{};
  if (::stat(path.c_str(), &s) != 0) return {};  // follows symbolic links: a flipped link is another inode
  return {s.st_dev, s.st_ino, s.st_size, s.st_mtim};
}

}  // namespace tandem::app

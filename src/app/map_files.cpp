#include "tandem/app/map_files.hpp"

#include "app/descriptor.hpp"
#include "tandem/app/map_error.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::app {

namespace {

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder (EINVAL); there the rename is as durable as it gets.
  if (fd.get() < 0 || (::fsync(fd.get()) != 0 && errno != EINVAL)) throw store_error("cannot sync", folder, errno);
}

}  // namespace

std::optional<std::string> read_whole(const std::filesystem::path& path, std::size_t max_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ENOENT) return {};
    throw store_error("cannot read", path, errno);
  }
  std::string text;
  char block[65536];
  while (text.size() <= max_bytes) {
    const ssize_t n = ::read(fd.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw store_error("cannot read", path, errno);
    if (n == 0) break;
    text.append(block, static_cast<std::size_t>(n));
  }
  if (text.size() > max_bytes) text.resize(max_bytes + 1);
  return text;
}

void write_and_sync(const std::filesystem::path& path, std::string_view content,
                    std::optional<std::chrono::system_clock::time_point> modified) {
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) throw store_error("cannot write", path, errno);
  while (!content.empty()) {
    const ssize_t n = ::write(fd.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw store_error("cannot write", path, errno);
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  if (modified) {
    const auto second = std::chrono::floor<std::chrono::seconds>(*modified);
    const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(*modified - second);
    const timespec at{static_cast<time_t>(second.time_since_epoch().count()), static_cast<long>(rest.count())};
    const timespec times[2] = {at, at};
    if (::futimens(fd.get(), times) != 0) throw store_error("cannot write", path, errno);
  }
  if (::fchmod(fd.get(), 0644) != 0 || ::fsync(fd.get()) != 0) throw store_error("cannot write", path, errno);
}

void rename_and_sync(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) throw store_error("cannot replace", to, errno);
  sync_folder(to.parent_path());
}

void replace_durably(const std::filesystem::path& path, const std::filesystem::path& scratch,
                     std::string_view content) {
  write_and_sync(scratch, content);
  rename_and_sync(scratch, path);
}

void make_folders(const std::filesystem::path& path) {
  std::error_code ec;
  std::filesystem::create_directories(path, ec);
  if (ec) throw store_error("cannot make the folder", path, ec.value());
}

}  // namespace tandem::app

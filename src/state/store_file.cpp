#include "state/store_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace tandem::state {

namespace {

std::string why(int error) { return std::generic_category().message(error); }

Fault unavailable(const std::string& path, std::string_view doing, const std::string& reason) {
  return {Fault::Kind::unavailable, path + ": cannot " + std::string(doing) + " the state file: " + reason};
}

std::string stamp(WallTime now) {
  const std::time_t at = now.time_since_epoch().count();
  std::tm parts{};
  gmtime_r(&at, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y%m%dT%H%M%SZ", &parts)};
}

}  // namespace

std::optional<Fault> read_header(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return unavailable(path, "open", why(errno));
  std::array<unsigned char, 100> head{};
  const ssize_t size = ::pread(fd, head.data(), head.size(), 0);
  ::close(fd);
  if (size < 0) return unavailable(path, "read", why(errno));
  if (size == 0) {
    // SQLite takes it for a new one and throws its log away.
    struct stat log{};
    if (::stat((path + "-wal").c_str(), &log) != 0 || log.st_size == 0) return std::nullopt;
    return Fault{Fault::Kind::damaged, path + ": the state file is damaged: it is empty and its log is not"};
  }
  // The file format: https://www.sqlite.org/fileformat2.html, 1.3. A version that only the log holds yet is not seen.
  static constexpr char kMagic[] = "SQLite format 3";
  if (static_cast<std::size_t>(size) < head.size() || std::memcmp(head.data(), kMagic, sizeof kMagic) != 0) {
    return Fault{Fault::Kind::damaged, path + ": the state file is damaged: it is no SQLite database"};
  }
  std::int64_t version = 0;
  for (std::size_t i = 60; i < 64; ++i) version = version << 8 | head[i];
  if (version > kSchemaVersion) return newer_fault(path, version);
  return std::nullopt;
}

std::optional<Fault> prepare_file(const std::string& path) {
  struct stat is{};
  if (::stat(path.c_str(), &is) == 0) {
    if (S_ISDIR(is.st_mode)) return unavailable(path, "open", "it is a directory, not a file");
    if (!S_ISREG(is.st_mode)) return unavailable(path, "open", "it is not a file");
    return std::nullopt;
  }
  if (errno != ENOENT) return unavailable(path, "open", why(errno));
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return unavailable(path, "create", why(errno));
  ::close(fd);
  return std::nullopt;
}

Fault newer_fault(const std::string& path, std::int64_t version) {
  return {Fault::Kind::newer, path + ": the state file is of a newer schema (" + std::to_string(version) +
                                  ") than this program knows (" + std::to_string(kSchemaVersion) +
                                  "): run the newer program, or move the file away"};
}

Fault sqlite_fault(sqlite3* connection, int code, const std::string& path, std::string_view doing) {
  const int primary = code & 0xff;
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
    return {Fault::Kind::damaged, path + ": the state file is damaged: " + sqlite3_errstr(code)};
  }
  std::string reason = sqlite3_errstr(code);
  if (const int error = connection != nullptr ? sqlite3_system_errno(connection) : 0;
      error != 0 && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_FULL)) {
    reason += " (" + why(error) + ")";
  }
  return unavailable(path, doing, reason);
}

std::optional<Fault> Store::inspect(const std::string& path) {
  struct stat is{};
  if (::stat(path.c_str(), &is) != 0) {
    if (errno != ENOENT) return unavailable(path, "open", why(errno));
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    if (::access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) != 0)
      return unavailable(path, "create", why(errno));
    return std::nullopt;
  }
  if (!S_ISREG(is.st_mode)) return prepare_file(path);
  if (::access(path.c_str(), W_OK) != 0) return unavailable(path, "write", why(errno));
  return read_header(path);
}

Outcome<std::string> Store::set_aside(const std::string& path, WallTime now) {
  const std::string base = path + ".damaged-" + stamp(now);
  std::string target = base;
  for (int n = 2; ::access(target.c_str(), F_OK) == 0; ++n) target = base + "-" + std::to_string(n);
  if (::rename(path.c_str(), target.c_str()) != 0) return unavailable(path, "set aside", why(errno));
  // The log may hold what the file lacks; the index of the log is made anew by whoever opens them.
  struct stat log{};
  const std::string wal = path + "-wal";
  if (::stat(wal.c_str(), &log) == 0 && log.st_size > 0) {
    if (::rename(wal.c_str(), (target + "-wal").c_str()) != 0) return unavailable(path, "set aside", why(errno));
  } else {
    ::unlink(wal.c_str());
  }
  ::unlink((path + "-shm").c_str());
  return target;
}

}  // namespace tandem::state

#include "tandem/client/memory_file.hpp"

#include "tandem/core/authority.hpp"
#include "tandem/core/json.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace tandem::client {
namespace {

constexpr std::uint64_t kMaxVersion = (std::uint64_t{1} << 53) - 1;

boost::system::error_code last_error() { return {errno, boost::system::system_category()}; }

bool write_and_sync(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) content.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0;
}

}  // namespace

Memory load_memory(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto json = parse_json(text);
  if (!json || !json->is_object()) return {};
  Memory memory;
  if (const auto version = json->find("version"); version != json->end() && version->is_number_unsigned()) {
    const auto value = version->get<std::uint64_t>();
    if (value <= kMaxVersion) memory.floor = MapVersion{value};
  }
  if (const auto host = json->find("host"); host != json->end() && host->is_string()) {
    const auto parsed = Authority::parse(host->get<std::string>());
    if (parsed && !parsed->owns_nothing()) memory.host = parsed->text();
  }
  return memory;
}

boost::system::error_code save_memory(const std::string& path, const Memory& memory) {
  Json json = Json::object();
  if (memory.floor) json["version"] = memory.floor->value;
  if (!memory.host.empty()) json["host"] = memory.host;
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return last_error();
  const bool whole = write_and_sync(fd, json.dump() + "\n");
  const boost::system::error_code fault = whole ? boost::system::error_code{} : last_error();
  ::close(fd);
  if (!whole || std::rename(fresh.c_str(), path.c_str()) != 0) {
    const boost::system::error_code why = whole ? last_error() : fault;
    ::unlink(fresh.c_str());
    return why;
  }
  return {};
}

}  // namespace tandem::client

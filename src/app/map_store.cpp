#include "tandem/app/map_store.hpp"

#include "tandem/app/map_error.hpp"
#include "tandem/app/map_files.hpp"
#include "tandem/core/json.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace tandem::app {

namespace {

constexpr std::size_t kMaxSmallFile = 64 * 1024;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t n = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc{} || end != text.data() + text.size() || text.empty()) return {};
  return n;
}

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

// The map and what is remembered of its publishing in one object, which is itself a valid map.
std::string entry_text(const shard::ShardMap& map, const HistoryEntry& e) {
  OrderedJson ranges = OrderedJson::array();
  for (const shard::Range& r : map.ranges()) ranges.push_back({{"low", r.low}, {"high", r.high}, {"host", r.host}});
  const OrderedJson out{{"version", e.version.value}, {"at", e.at},           {"by", e.by},
                        {"action", e.action},         {"message", e.message}, {"moved_buckets", e.moved_buckets},
                        {"ranges", std::move(ranges)}};
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

StoreLock::~StoreLock() {
  if (fd_ < 0) return;
  if (::ftruncate(fd_, 0) != 0) {
    // A name too many in the lock file misleads nobody while the lock is free.
  }
  ::close(fd_);  // lets go of the flock as well
}

std::filesystem::path MapStore::history_path(MapVersion v) const {
  return folder_ / "history" / (std::to_string(v.value) + ".json");
}

bool MapStore::has_map() const { return read_whole(map_path(), 0).has_value(); }

std::string MapStore::text() const {
  auto text = read_whole(map_path(), shard::kMaxMapBytes);
  if (!text)
    throw MapError("no_map", "--store: " + folder_.string() + " holds no map; make one with init",
                   {{"value", folder_.string()}});
  return *std::move(text);
}

shard::ShardMap MapStore::current() const {
  auto map = shard::ShardMap::parse(text());
  if (const auto* fault = std::get_if<shard::MapFault>(&map)) throw invalid_map(map_path(), *fault);
  return std::get<shard::ShardMap>(std::move(map));
}

std::optional<shard::ShardMap> MapStore::version(MapVersion v, const shard::ShardMap& current) const {
  if (v == current.version()) return current;
  if (v > current.version()) return {};
  const auto text = read_whole(history_path(v), shard::kMaxMapBytes);
  if (!text) return {};
  auto map = shard::ShardMap::parse(*text);
  if (const auto* fault = std::get_if<shard::MapFault>(&map)) throw invalid_map(history_path(v), *fault);
  return std::get<shard::ShardMap>(std::move(map));
}

std::optional<HistoryEntry> MapStore::entry(MapVersion v) const {
  const auto text = read_whole(history_path(v), shard::kMaxMapBytes);
  if (!text) return {};
  const auto json = parse_json(*text, {.max_bytes = shard::kMaxMapBytes, .max_depth = 16});
  if (!json || !json->is_object()) return {};
  HistoryEntry e{v, text_of(*json, "at"), text_of(*json, "by"), text_of(*json, "action"), text_of(*json, "message"), 0};
  if (const auto it = json->find("moved_buckets"); it != json->end() && it->is_number_unsigned())
    e.moved_buckets = it->get<std::uint32_t>();
  return e;
}

std::vector<HistoryEntry> MapStore::history(MapVersion current, std::size_t limit) const {
  std::vector<std::uint64_t> versions;
  std::error_code ec;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "history", ec)) {
    if (file.path().extension() != ".json") continue;
    const auto v = number(file.path().stem().native());
    if (v && *v <= current.value) versions.push_back(*v);
  }
  std::sort(versions.rbegin(), versions.rend());
  std::vector<HistoryEntry> out;
  for (const std::uint64_t v : versions) {
    if (out.size() >= limit) break;
    if (auto e = entry({v})) out.push_back(*std::move(e));
  }
  return out;
}

std::optional<std::chrono::system_clock::time_point> MapStore::modified_at() const {
  struct stat info{};
  if (::stat(map_path().c_str(), &info) != 0) return {};
  return std::chrono::system_clock::time_point{std::chrono::seconds{info.st_mtim.tv_sec} +
                                               std::chrono::nanoseconds{info.st_mtim.tv_nsec}};
}

std::optional<std::chrono::system_clock::time_point> MapStore::published_at(MapVersion current) const {
  const auto modified = modified_at();
  const auto known = modified ? entry(current) : std::nullopt;
  const auto at = known ? parse_utc(known->at) : std::nullopt;
  if (!at) return modified;
  // The file's time runs ahead of the clock after many publishes in a second: the history knows better then.
  return std::min<std::chrono::system_clock::time_point>(*modified, *at + std::chrono::seconds(1));
}

void MapStore::create_folders() {
  for (const auto& folder : {folder_, folder_ / "history", own(), own() / "drafts"}) make_folders(folder);
}

StoreLock MapStore::lock(Duration timeout, const std::string& holder) {
  create_folders();
  const auto path = own() / "lock";
  StoreLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) throw store_error("cannot open the lock", path, errno);
  const auto until = std::chrono::steady_clock::now() + timeout;
  // Asked again in small equal steps rather than waited for: a wait in the kernel has no time-out, and steps that grow
  // would let newcomers pass those who have waited longest.
  while (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw store_error("cannot lock", path, errno);
    if (std::chrono::steady_clock::now() >= until) {
      std::string by = read_whole(path, 200).value_or("");
      by.erase(std::find(by.begin(), by.end(), '\n'), by.end());
      throw MapError("locked",
                     "--store: " + folder_.string() + " is locked by another writer" +
                         (by.empty() ? "" : " (" + by + ")") + "; try again, or wait longer with --lock-timeout",
                     {{"value", folder_.string()}});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  const std::string name = holder + ", process " + std::to_string(::getpid()) + "\n";
  // Only for people; a lock whose file cannot be written is still a lock.
  if (::ftruncate(lock.fd_, 0) == 0) [[maybe_unused]]
    const auto n = ::pwrite(lock.fd_, name.data(), name.size(), 0);
  return lock;
}

void MapStore::commit(const StoreLock&, const shard::ShardMap& map, const HistoryEntry& entry) {
  const std::string text = map.to_json();
  if (text.size() > shard::kMaxMapBytes)
    throw MapError("invalid_map",
                   "the new map would be " + std::to_string(text.size()) + " bytes: relays refuse more than 1 MiB",
                   {{"kind", "too_large"}, {"where", ""}, {"value", std::to_string(text.size())}});
  const auto new_entry = own() / "entry.new";
  write_and_sync(new_entry, entry_text(map, entry));
  step("entry written");
  rename_and_sync(new_entry, history_path(entry.version));
  step("entry in place");
  const auto new_map = own() / "shardmap.new";
  // Web servers make an ETag of a file's size and the second of its last change. Two maps of one size in one second
  // would be one to them, and a relay that holds the first would never be given the second.
  auto modified = std::chrono::system_clock::now();
  if (const auto before = modified_at())
    modified = std::max<decltype(modified)>(
        modified, std::chrono::floor<std::chrono::seconds>(*before) + std::chrono::seconds(1));
  write_and_sync(new_map, text, modified);
  step("map written");
  rename_and_sync(new_map, map_path());
  step("map in place");
}

std::filesystem::path MapStore::keep_draft(const std::string& text) {
  create_folders();
  const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  std::string stamp = utc_text(now);
  std::erase_if(stamp, [](char c) { return c == ':' || c == '-'; });
  std::string name = (own() / "drafts" / (stamp + "-XXXXXX.json")).string();
  const int fd = ::mkstemps(name.data(), 5);
  if (fd < 0) throw store_error("cannot write a draft under", own() / "drafts", errno);
  ::close(fd);
  write_and_sync(name, text);
  return name;
}

std::vector<std::string> MapStore::upload_command() const {
  const auto path = own() / "store.json";
  const auto text = read_whole(path, kMaxSmallFile);
  if (!text) return {};
  Json json;
  JsonFault fault;
  const auto refuse = [&](const std::string& why) {
    return MapError("store_failed", path.string() + ": " + why, {{"value", path.string()}});
  };
  if (!parse_json_file(*text, {}, true, json, fault)) throw refuse(fault.what.empty() ? "is not JSON" : fault.what);
  if (!json.is_object()) throw refuse("is not an object");
  const auto it = json.find("upload");
  if (it == json.end() || it->is_null()) return {};
  if (!it->is_array() || it->empty() ||
      !std::all_of(it->begin(), it->end(), [](const Json& e) { return e.is_string(); }))
    throw refuse("upload is not a list of strings");
  return it->get<std::vector<std::string>>();
}

void MapStore::set_upload_command(const StoreLock&, const std::vector<std::string>& command) {
  replace_durably(own() / "store.json", own() / "store.new", OrderedJson{{"upload", command}}.dump() + "\n");
}

std::optional<MapVersion> MapStore::uploaded() const {
  auto text = read_whole(own() / "uploaded", kMaxSmallFile);
  if (!text) return {};
  while (!text->empty() && text->back() == '\n') text->pop_back();
  const auto v = number(*text);
  return v ? std::optional(MapVersion{*v}) : std::nullopt;
}

void MapStore::set_uploaded(const StoreLock&, MapVersion v) {
  replace_durably(own() / "uploaded", own() / "uploaded.new", std::to_string(v.value) + "\n");
}

std::string utc_text(WallTime t) {
  const auto day = std::chrono::floor<std::chrono::days>(t);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{t - day};
  char text[40];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02dZ", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                static_cast<int>(time.seconds().count()));
  return text;
}

std::optional<WallTime> parse_utc(const std::string& text) {
  int y = 0, h = 0, mi = 0, s = 0, end = 0;
  unsigned mo = 0, d = 0;
  if (std::sscanf(text.c_str(), "%4d-%2u-%2uT%2d:%2d:%2dZ%n", &y, &mo, &d, &h, &mi, &s, &end) != 6 ||
      static_cast<std::size_t>(end) != text.size())
    return {};
  const std::chrono::year_month_day date{std::chrono::year{y}, std::chrono::month{mo}, std::chrono::day{d}};
  if (!date.ok()) return {};
  return std::chrono::sys_days{date} + std::chrono::hours{h} + std::chrono::minutes{mi} + std::chrono::seconds{s};
}

}  // namespace tandem::app

#include "tandem/app/fleet_audit.hpp"

#include "tandem/core/json.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

std::string text_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

std::uint64_t number_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
}

// "2026-11-30T01:42:42.374Z". A run over midnight would count two seconds as one, which fails nothing.
std::chrono::milliseconds time_of_day(const std::string& stamp) {
  unsigned hours = 0, minutes = 0, whole = 0, thousandths = 0;
  if (std::sscanf(stamp.c_str(), "%*4u-%*2u-%*2uT%2u:%2u:%2u.%3uZ", &hours, &minutes, &whole, &thousandths) != 4)
    return {};
  return std::chrono::hours(hours) + std::chrono::minutes(minutes) + std::chrono::seconds(whole) +
         std::chrono::milliseconds(thousandths);
}

}  // namespace

FleetAudit::FleetAudit(std::string hostname, std::string log_path)
    : hostname_(std::move(hostname)), log_path_(std::move(log_path)) {}

void FleetAudit::read_on(const FleetMaps& maps, const FleetRooms& rooms, FleetFindings& findings) {
  std::ifstream file(log_path_);
  file.seekg(read_to_);
  std::string line;
  while (std::getline(file, line) && !file.eof()) {  // a line without its end is read once it is whole
    read_to_ = file.tellg();
    take(line, maps, rooms, findings);
  }
}

void FleetAudit::take(std::string_view line, const FleetMaps& maps, const FleetRooms& rooms, FleetFindings& findings) {
  const auto event = parse_json(line);
  if (!event || !event->is_object()) return;
  const std::string message = text_at(*event, "message");
  if (message == "starting") {
    held_ = nullptr;
  } else if (message == "map adopted") {
    const std::uint64_t version = number_at(*event, "version");
    // The floor itself may be adopted again, by a process that has just begun.
    if (version < newest_ || (version == newest_ && held_ != nullptr))
      findings.faults.push_back(hostname_ + " adopted version " + std::to_string(version) + " after version " +
                                std::to_string(newest_));
    const auto map = maps.find(version);
    if (map == maps.end())
      findings.faults.push_back(hostname_ + " adopted version " + std::to_string(version) + ", which nobody published");
    held_ = map == maps.end() ? nullptr : &map->second;
    newest_ = version;
  } else if (message == "closed") {
    const bool evicted = number_at(*event, "code") == 4421 && text_at(*event, "role") != "none";
    const std::string room = text_at(*event, "room");
    // Both sockets of a room: the first time stands.
    if (evicted && rooms.contains(room))
      findings.evictions[hostname_].emplace(room, time_of_day(text_at(*event, "time")));
  } else if (message == "admitted") {
    const auto room = rooms.find(text_at(*event, "room"));
    if (room == rooms.end()) return;
    ++findings.admissions;
    if (held_ != nullptr && held_->owner_of(room->second) == hostname_) return;
    findings.faults.push_back(
        hostname_ + " admitted room " + room->first + " of bucket " + std::to_string(room->second.value) +
        (held_ != nullptr
             ? ", which version " + std::to_string(held_->version().value) + " gives to " + held_->host_of(room->second)
             : " while it held no map"));
  }
}

std::size_t most_in_a_second(std::vector<std::chrono::nanoseconds> times) {
  std::sort(times.begin(), times.end());
  std::size_t most = 0;
  for (auto first = times.begin(), last = first; last != times.end(); ++last) {
    while (*last - *first >= std::chrono::seconds(1)) ++first;
    most = std::max(most, static_cast<std::size_t>(last - first) + 1);
  }
  return most;
}

}  // namespace tandem::app

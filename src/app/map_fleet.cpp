#include "tandem/app/map_fleet.hpp"

#include "tandem/net/http_fetch.hpp"

#include <charconv>
#include <cmath>
#include <future>
#include <vector>

namespace tandem::app {

namespace {

std::optional<std::string> read_one(const std::string& url, Duration timeout) {
  net::FetchRequest request;
  request.url = url;
  request.timeout = timeout;
  auto result = net::fetch_blocking(std::move(request));
  auto* answer = std::get_if<net::FetchAnswer>(&result);
  if (!answer || answer->status != 200) return {};
  return std::move(answer->body);
}

// "tandem_rooms{state="spliced"} 12" into its name with labels, and its value. Values are floats in the text format.
std::optional<std::pair<std::string_view, double>> sample(std::string_view line) {
  if (line.empty() || line.front() == '#') return {};
  const std::size_t close = line.find('}');
  const std::size_t space = line.find(' ', close == std::string_view::npos ? 0 : close);
  if (space == std::string_view::npos) return {};
  const std::string_view number = line.substr(space + 1);
  double value = 0;
  const auto [end, ec] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (ec != std::errc{} || !std::isfinite(value) || value < 0) return {};
  return std::pair(line.substr(0, space), value);
}

}  // namespace

std::optional<HostMetrics> parse_metrics(std::string_view text) {
  std::optional<double> version, draining;
  std::optional<double> rooms;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const auto s = sample(line);
    if (!s) continue;
    const auto& [name, value] = *s;
    if (name == "tandem_shard_map_version") version = value;
    if (name == "tandem_draining_rooms") draining = value;
    for (const std::string_view state : {"spliced", "mac_only", "phone_only"})
      if (name.starts_with("tandem_rooms{") &&
          name.find("state=\"" + std::string(state) + "\"") != std::string_view::npos)
        rooms = rooms.value_or(0) + value;
  }
  if (!version || !rooms) return {};
  return HostMetrics{{static_cast<std::uint64_t>(*version)},
                     static_cast<std::uint64_t>(*rooms),
                     static_cast<std::uint64_t>(draining.value_or(0))};
}

std::optional<HostMetrics> read_metrics(const std::string& admin_url, Duration timeout) {
  const auto body = read_one(admin_url + "/metrics", timeout);
  return body ? parse_metrics(*body) : std::nullopt;
}

std::map<std::string, std::string> read_of_all(const Admins& admins, const std::string& path, Duration timeout) {
  std::vector<std::pair<std::string, std::future<std::optional<std::string>>>> running;
  for (const auto& [host, url] : admins)
    running.emplace_back(host, std::async(std::launch::async, read_one, url + path, timeout));
  std::map<std::string, std::string> out;
  for (auto& [host, future] : running)
    if (auto body = future.get()) out.emplace(host, *std::move(body));
  return out;
}

std::map<std::string, HostMetrics> read_metrics_of_all(const Admins& admins, Duration timeout) {
  std::map<std::string, HostMetrics> out;
  for (const auto& [host, body] : read_of_all(admins, "/metrics", timeout))
    if (const auto metrics = parse_metrics(body)) out.emplace(host, *metrics);
  return out;
}

}  // namespace tandem::app

#include "tandem/app/published_map.hpp"

#include "tandem/net/http_fetch.hpp"

#include <ctime>
#include <utility>

namespace tandem::app {
namespace {

std::optional<WallTime> date_of(const net::FetchAnswer& answer) {
  const auto text = answer.header("date");
  std::tm parts{};
  // RFC 9110, 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT"
  if (!text || ::strptime(std::string(*text).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts) == nullptr)
    return std::nullopt;
  return WallTime(seconds(::timegm(&parts)));
}

}  // namespace

std::variant<PublishedMap, UnpublishedMap> fetch_published(const config::ShardMapSource& source) {
  net::FetchRequest request;
  request.url = source.url;
  request.timeout = source.fetch_timeout;
  request.ca_file = source.ca_file.value_or("");
  const net::FetchResult got = net::fetch_blocking(request);
  if (const auto* failure = std::get_if<net::FetchFailure>(&got))
    return UnpublishedMap{std::string(net::label(failure->cause)) + ": " + failure->detail};
  const auto& answer = std::get<net::FetchAnswer>(got);
  auto parsed = shard::ShardMap::parse(answer.body);
  if (const auto* fault = std::get_if<shard::MapFault>(&parsed)) return UnpublishedMap{fault->message, true};
  return PublishedMap{std::get<shard::ShardMap>(std::move(parsed)), date_of(answer)};
}

std::uint32_t buckets_of(const shard::ShardMap& map, const std::string& host) {
  std::uint32_t owned = 0;
  for (const shard::Range& range : map.ranges()) owned += range.host == host ? range.high - range.low + 1u : 0u;
  return owned;
}

}  // namespace tandem::app

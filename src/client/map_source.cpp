// The shard map by HTTP, as a client fetches it: one attempt a fetch, an ETag sent back, the answer's max-age kept.
#include "tandem/client/device.hpp"
#include "tandem/net/http_fetch.hpp"

#include <optional>
#include <utility>

namespace tandem::client {
namespace {

class HttpMapSource final : public MapSource {
 public:
  HttpMapSource(boost::asio::io_context& loop, std::string url, std::string ca_file)
      : fetcher_(loop), url_(std::move(url)), ca_file_(std::move(ca_file)) {}

  void fetch(std::function<void(const MapAnswer&)> done) override {
    net::FetchRequest request;
    request.url = url_;
    request.ca_file = ca_file_;
    request.max_body_bytes = shard::kMaxMapBytes;
    if (!etag_.empty()) request.headers.emplace_back("If-None-Match", etag_);
    running_ = fetcher_.start(std::move(request),
                              [this, done = std::move(done)](const net::FetchResult& result) { done(judge(result)); });
  }

  void cancel() override { running_.cancel(); }

 private:
  MapAnswer judge(const net::FetchResult& result) {
    if (const auto* failure = std::get_if<net::FetchFailure>(&result)) return MapFailed{failure->detail};
    const auto& answer = std::get<net::FetchAnswer>(result);
    const Duration max_age = parse_max_age(answer.header("cache-control").value_or(""));
    if (answer.status == 304) return MapUnchanged{max_age};
    auto parsed = shard::ShardMap::parse(answer.body);
    if (const auto* fault = std::get_if<shard::MapFault>(&parsed)) return MapFailed{fault->message};
    auto map = std::make_shared<const shard::ShardMap>(std::get<shard::ShardMap>(std::move(parsed)));
    // Only the newest map is asked for again: an edge that lags behind must not say "not modified" of its old one.
    if (!newest_ || map->version() >= *newest_) {
      newest_ = map->version();
      etag_ = answer.header("etag").value_or("");
    }
    return FetchedMap{std::move(map), max_age};
  }

  net::HttpFetcher fetcher_;
  std::string url_, ca_file_, etag_;  // the tag of the newest map
  std::optional<MapVersion> newest_;
  net::Fetch running_;
};

}  // namespace

std::unique_ptr<MapSource> http_map_source(boost::asio::io_context& loop, std::string url, std::string ca_file) {
  return std::make_unique<HttpMapSource>(loop, std::move(url), std::move(ca_file));
}

}  // namespace tandem::client

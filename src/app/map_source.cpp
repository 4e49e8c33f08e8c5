#include "tandem/app/map_source.hpp"

#include "tandem/app/map_error.hpp"
#include "tandem/app/map_files.hpp"
#include "tandem/app/map_gunzip.hpp"

#include <iostream>
#include <iterator>

namespace tandem::app {

bool is_url(const std::string& source) {
  const std::size_t colon = source.find("://");
  return colon != std::string::npos && colon > 0 && source.find('/') > colon;
}

std::string read_source(const std::string& file) {
  if (file == "-") {
    std::string text;
    char block[65536];
    while (text.size() <= shard::kMaxMapBytes && (std::cin.read(block, sizeof block) || std::cin.gcount() > 0))
      text.append(block, static_cast<std::size_t>(std::cin.gcount()));
    return text;
  }
  std::string why = "there is no such file";
  try {
    if (auto text = read_whole(file, shard::kMaxMapBytes)) return *std::move(text);
  } catch (const MapError& error) {
    why = error.what();
  }
  throw MapError("fetch_failed", file + ": " + why, {{"cause", "other"}, {"value", file}});
}

net::FetchAnswer fetch_map(const std::string& url, bool any_coding) {
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    net::FetchRequest request;
    request.url = url;
    request.max_body_bytes = shard::kMaxMapBytes;
    request.any_coding = any_coding;
    auto result = net::fetch_blocking(std::move(request));
    if (auto* answer = std::get_if<net::FetchAnswer>(&result)) {
      if (answer->header("content-encoding"))
        if (auto plain = gunzip(answer->body, shard::kMaxMapBytes)) answer->body = *std::move(plain);
      return std::move(*answer);
    }
    const auto& failure = std::get<net::FetchFailure>(result);
    if (failure.retryable && attempt < kAttempts) continue;
    const std::string cause(label(failure.cause));
    throw MapError("fetch_failed", url + ": " + cause + ": " + failure.detail, {{"cause", cause}, {"value", url}});
  }
}

shard::ShardMap parse_map(const std::string& source, const std::string& text) {
  auto map = shard::ShardMap::parse(text);
  if (const auto* fault = std::get_if<shard::MapFault>(&map)) throw invalid_map(source, *fault);
  return std::get<shard::ShardMap>(std::move(map));
}

shard::Draft parse_draft(const std::string& source, const std::string& text) {
  auto draft = shard::Draft::parse(text);
  if (const auto* fault = std::get_if<shard::MapFault>(&draft)) throw invalid_map(source, *fault);
  return std::get<shard::Draft>(std::move(draft));
}

}  // namespace tandem::app

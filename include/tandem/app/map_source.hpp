// Maps from wherever a command names them: a file, stdin, a URL. Failures are MapErrors: fetch_failed, invalid_map.
#pragma once

#include "tandem/net/http_fetch.hpp"
#include "tandem/shard/map.hpp"

#include <string>

namespace tandem::app {

[[nodiscard]] bool is_url(const std::string& source);  // scheme://
// "-" is stdin. More than a map may hold is cut just behind the limit, for the parser to refuse.
[[nodiscard]] std::string read_source(const std::string& file);
// As a relay fetches (2-sharding 2.3): up to three attempts of 3 s, each on a fresh connection, 4xx never retried.
// any_coding: a coded body is not a failure (as it is for a relay) but handed over, undone where it is gzip.
[[nodiscard]] net::FetchAnswer fetch_map(const std::string& url, bool any_coding = false);
[[nodiscard]] shard::ShardMap parse_map(const std::string& source, const std::string& text);
[[nodiscard]] shard::Draft parse_draft(const std::string& source, const std::string& text);

}  // namespace tandem::app

// Strict JSON for bytes that strangers send: bounded in size and depth, duplicate keys and trailing bytes refused, UTF-8 checked.
#pragma once

#include "tandem/core/error.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem {

using Json = nlohmann::json;

struct JsonLimits {
  std::size_t max_bytes = 64 * 1024;
  std::size_t max_depth = 16;
};

// Errors: too_large, too_deep, duplicate_key (keys compared after unescaping), malformed (trailing bytes, comments, NUL,
// lone surrogates, numbers that do not fit a double among them). Never throws; needs no more stack than max_depth levels.
[[nodiscard]] Result<Json> parse_json(std::string_view text, JsonLimits limits = {});

// As above, and says where: for files an operator edits. `comments` allows // and /* */.
struct JsonFault {
  Error error = Error::malformed;
  std::string what;   // "duplicate key limits.rooms", "a comma before }", ...
  std::string path;   // dotted path of the nearest key, may be empty
  std::size_t line = 0, column = 0;  // 1-based; 0 where unknown
};
[[nodiscard]] bool parse_json_file(std::string_view text, JsonLimits limits, bool comments, Json& out, JsonFault& fault);

}  // namespace tandem

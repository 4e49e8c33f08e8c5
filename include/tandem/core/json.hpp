// Strict JSON for bytes that strangers send: bounded in size and depth, duplicate keys and trailing bytes refused,
// UTF-8 checked.
#pragma once

#include "tandem/core/error.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace tandem {

using Json = nlohmann::json;

struct JsonLimits {
  std::size_t max_bytes = 64 * 1024;
  std::size_t max_depth = 16;
};

// Errors: too_large, too_deep, duplicate_key (keys compared after unescaping), malformed (trailing bytes, comments,
// NUL, lone surrogates, numbers that do not fit a double among them). Never throws; needs no more stack than max_depth
// levels.
[[nodiscard]] Result<Json> parse_json(std::string_view text, JsonLimits limits = {});

// As above, and says where: for files an operator edits. `comments` allows // and /* */.
struct JsonFault {
  Error error = Error::malformed;
  std::string what;                  // "duplicate key limits.rooms", "a comma before }", ...
  std::string path;                  // dotted path of the nearest key, may be empty
  std::size_t line = 0, column = 0;  // 1-based; 0 where unknown
};
// Where each key stands: dotted path ("limits.rooms", "listen[1]") to the 1-based line of the key (or array element).
using JsonLines = std::map<std::string, std::size_t>;
// True and `out`, or false and `fault`. `lines`, where given, is filled as far as the text was read. The top level may
// be any value.
[[nodiscard]] bool parse_json_file(std::string_view text, JsonLimits limits, bool comments, Json& out, JsonFault& fault,
                                   JsonLines* lines = nullptr);

}  // namespace tandem

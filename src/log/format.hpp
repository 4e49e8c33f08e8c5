// One event to one line, as text or as a JSON object: control characters escaped, what is not UTF-8 replaced, length
// bounded.
#pragma once

#include "tandem/log/log.hpp"

#include <ctime>
#include <string>
#include <string_view>

namespace tandem::log {

inline constexpr std::size_t kMaxLine = 3500;  // below PIPE_BUF with its prefix

[[nodiscard]] std::string_view to_string(Level level) noexcept;

// `message key=value key="two words"`, cut at kMaxLine.
[[nodiscard]] std::string format_text(std::string_view message, Fields fields);
// {"time":"2026-07-12T10:00:00.123Z","level":"info","message":"...",...}; strings are cut so that the object stays
// whole.
[[nodiscard]] std::string format_json(timespec at, Level level, std::string_view message, Fields fields);
// "2026-07-12T10:00:00.123Z"
[[nodiscard]] std::string format_time(timespec at);

}  // namespace tandem::log

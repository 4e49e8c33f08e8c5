// The version and commit of this build, as --version, /status and build_info report them.
#pragma once

#include <string_view>

namespace tandem {

[[nodiscard]] std::string_view version() noexcept;  // "1.2.3"
[[nodiscard]] std::string_view commit() noexcept;   // twelve hex digits, or "unknown" outside a checkout

}  // namespace tandem

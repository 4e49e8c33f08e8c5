// Runs a store's upload command: no shell, its own process group, killed when it takes too long or when we are.
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tandem::app {

// A JSON list of strings, not empty; else what is wrong with it.
[[nodiscard]] std::variant<std::vector<std::string>, std::string> parse_upload_command(std::string_view json);

// `{file}` in any argument becomes the map's path; TANDEM_VERSION is set; what the command prints goes to stderr.
// Nothing on success, else what happened ("ended with status 1", "took more than 60 s", "rclone: No such file or
// directory").
[[nodiscard]] std::optional<std::string> run_upload(const std::vector<std::string>& command,
                                                    const std::filesystem::path& map, MapVersion version,
                                                    Duration timeout);

}  // namespace tandem::app

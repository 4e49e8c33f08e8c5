// Files that are there whole or not at all, also after a power cut. Failures are MapErrors `store_failed` that name the
// path.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::app {

// Nothing where there is no such file. More than max_bytes is cut after max_bytes + 1, so that the reader sees it is
// too long.
[[nodiscard]] std::optional<std::string> read_whole(const std::filesystem::path& path, std::size_t max_bytes);

// Writes and syncs a new file (mode 0644 whatever the umask), then renames it to `path` and syncs the folder. `scratch`
// is in the same file system; what an interrupted writer left there is overwritten.
void replace_durably(const std::filesystem::path& path, const std::filesystem::path& scratch, std::string_view content);

// `modified`: the time the file bears, in place of the time of writing.
void write_and_sync(const std::filesystem::path& path, std::string_view content,
                    std::optional<std::chrono::system_clock::time_point> modified = {});
void rename_and_sync(const std::filesystem::path& from, const std::filesystem::path& to);
void make_folders(const std::filesystem::path& path);

}  // namespace tandem::app

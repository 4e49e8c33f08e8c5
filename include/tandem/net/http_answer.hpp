// The head of an HTTP/1.1 answer of ours, on the public port and on the admin listener alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::net {

// Status line, Content-Type, Content-Length, `fields` (each with its line end), and Connection: close where the
// connection ends; up to and with the empty line.
[[nodiscard]] std::string answer_head(std::uint16_t status, std::string_view type, std::size_t length,
                                      std::string_view fields, bool keep_alive);

}  // namespace tandem::net

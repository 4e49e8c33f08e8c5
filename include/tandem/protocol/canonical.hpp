// The one unambiguous way in which endpoints and relay turn several fields into bytes to hash or sign (1-wire 1.1).
#pragma once

#include "tandem/core/base64.hpp"

#include <initializer_list>
#include <span>
#include <string_view>

namespace tandem {

// len32be(domain) || domain || for each field: len32be(field) || field. No field may reach 4 GiB.
[[nodiscard]] Bytes canonical(std::string_view domain, std::span<const ByteView> fields);
[[nodiscard]] inline Bytes canonical(std::string_view domain, std::initializer_list<ByteView> fields) {
  return canonical(domain, std::span<const ByteView>(fields.begin(), fields.size()));
}

}  // namespace tandem

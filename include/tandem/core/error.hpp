// The peer's faults as values: what a parser or check found wrong. Never thrown; each ends one session, with a reason.
#pragma once

#include <string_view>
#include <type_traits>

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

namespace tandem {

enum class Error {
  malformed = 1,  // not the syntax it should be
  duplicate_key,  // JSON or CBOR with a key twice
  too_deep,       // nesting past the limit
  too_large,      // longer than the limit
  missing_field,
  bad_value,  // right syntax, wrong value
  bad_base64,
  bad_signature,
  bad_authority,
  not_found,
  unsupported,
};

[[nodiscard]] const boost::system::error_category& error_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(Error e) noexcept;
[[nodiscard]] std::string_view to_string(Error e) noexcept;  // "too deep"

template <class T>
using Result = boost::system::result<T>;

}  // namespace tandem

template <>
struct boost::system::is_error_code_enum<tandem::Error> : std::true_type {};

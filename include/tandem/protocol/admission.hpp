// The messages of admission: what a client says before it is let in, and what it is told (1-wire 1.4). Peers' bytes
// become values here and nowhere else. Unknown fields are ignored, duplicate keys are malformed, a field of another
// JSON type counts as absent.
#pragma once

#include "tandem/core/base64.hpp"
#include "tandem/core/close_reason.hpp"
#include "tandem/core/error.hpp"
#include "tandem/core/ids.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tandem::protocol {

inline constexpr std::size_t kAdmissionMessageBytes = 8 * 1024;

struct Hello {
  Role role = Role::mac;
  bool non_displacing = false;
};

// Errors: those of parse_json; bad_value for another version or role; missing_field.
[[nodiscard]] Result<Hello> parse_hello(std::string_view message);

struct Proof {
  std::optional<std::string> signature;  // base64, not decoded: a wrong one is `bad signature`, not `bad proof`
  std::optional<std::string> ticket;
};

// Errors: those of parse_json; malformed where it is not an object.
[[nodiscard]] Result<Proof> parse_proof(std::string_view message);

[[nodiscard]] std::string nonce_message(ByteView nonce);
[[nodiscard]] std::string admitted_message();                             // a mac
[[nodiscard]] std::string admitted_message(ByteView registration_token);  // a phone
[[nodiscard]] std::string refused_message(CloseReason reason);

// The clients' side.
[[nodiscard]] std::string hello_message(Role role, bool non_displacing);
[[nodiscard]] std::string proof_message(const Proof& proof);

}  // namespace tandem::protocol

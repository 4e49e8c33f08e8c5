// The bodies of the POST endpoints and their answers, as fixed lists (1-wire 1.6).
#pragma once

#include "tandem/core/base64.hpp"
#include "tandem/core/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::protocol {

// Every answer an endpoint can give. `assertion_rejected` has a reason behind its text.
enum class Answer : std::uint8_t {
  ok,
  bad_json,
  attestation_disabled,
  missing_fields,
  bad_challenge,
  attestation_rejected,
  too_many_outstanding_challenges,
  too_many_outstanding_tickets,
  missing_verifier,
  bad_verifier,
  already_registered,
  token_required,
  bad_token,
  token_not_attested,
  assertion_required,
  assertion_rejected,
  stale_assertion,
  not_established,
  signature_required,
  bad_signature,
  state_unavailable,
  misdirected,  // the bucket was lost while the request waited; the body is plain text, as at the gate
  capacity,     // the worker has no room for another attestation now
};
inline constexpr int kAnswerCount = static_cast<int>(Answer::capacity) + 1;

[[nodiscard]] std::uint16_t status(Answer a) noexcept;    // 200, 400, 403, 421, 429, 500, 503
[[nodiscard]] std::string_view text(Answer a) noexcept;   // "bad challenge"; empty for ok
[[nodiscard]] std::string_view label(Answer a) noexcept;  // "bad_challenge"

[[nodiscard]] std::string ok_body();
[[nodiscard]] std::string challenge_body(ByteView challenge);
[[nodiscard]] std::string ticket_body(ByteView ticket);
// detail: appended as ": <detail>", a fixed text of ours.
[[nodiscard]] std::string refusal_body(Answer a, std::string_view detail = {});

// The string fields of a body, of all endpoints together: what is absent or of another JSON type is nothing.
struct EndpointFields {
  std::optional<std::string> challenge, attestation_object, registration_token, verifier, assertion, signature;
};
// Errors: those of parse_json (64 KiB, depth 16); malformed where it is not an object.
[[nodiscard]] Result<EndpointFields> parse_endpoint_body(std::string_view body);

}  // namespace tandem::protocol

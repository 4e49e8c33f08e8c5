#include "tandem/protocol/endpoint.hpp"

#include "tandem/core/json.hpp"

#include <array>

#include <nlohmann/json.hpp>

namespace tandem::protocol {
namespace {

struct Row {
  std::uint16_t status;
  std::string_view text, label;
};

// In the order of the enumeration.
constexpr std::array<Row, kAnswerCount> kRows{{
    {200, "", "ok"},
    {400, "bad json", "bad_json"},
    {400, "attestation disabled", "attestation_disabled"},
    {400, "missing fields", "missing_fields"},
    {403, "bad challenge", "bad_challenge"},
    {403, "attestation rejected", "attestation_rejected"},
    {429, "too many outstanding challenges", "too_many_outstanding_challenges"},
    {429, "too many outstanding tickets", "too_many_outstanding_tickets"},
    {400, "missing verifier", "missing_verifier"},
    {400, "bad verifier", "bad_verifier"},
    {403, "already registered", "already_registered"},
    {403, "token required", "token_required"},
    {403, "bad token", "bad_token"},
    {403, "token not attested", "token_not_attested"},
    {403, "assertion required", "assertion_required"},
    {403, "assertion rejected", "assertion_rejected"},
    {403, "stale assertion", "stale_assertion"},
    {403, "not established", "not_established"},
    {403, "signature required", "signature_required"},
    {403, "bad signature", "bad_signature"},
    {500, "state unavailable", "state_unavailable"},
    {421, "misdirected", "misdirected"},
    {503, "capacity", "capacity"},
}};

const Row& row(Answer a) noexcept { return kRows[static_cast<std::size_t>(a)]; }

std::optional<std::string> endpoint_field(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

}  // namespace

std::uint16_t status(Answer a) noexcept { return row(a).status; }
std::string_view text(Answer a) noexcept { return row(a).text; }
std::string_view label(Answer a) noexcept { return row(a).label; }

std::string ok_body() { return R"({"ok":true})"; }

std::string challenge_body(ByteView challenge) {
  return R"({"ok":true,"challenge":")" + base64_encode(challenge) + R"("})";
}

std::string ticket_body(ByteView ticket) { return R"({"ok":true,"ticket":")" + base64_encode(ticket) + R"("})"; }

std::string refusal_body(Answer a, std::string_view detail) {
  if (a == Answer::misdirected) return std::string(text(a));
  std::string body = R"({"ok":false,"error":")" + std::string(text(a));
  if (!detail.empty()) body.append(": ").append(detail);
  return body += R"("})";
}

Result<EndpointFields> parse_endpoint_body(std::string_view body) {
  Result<Json> json = parse_json(body, JsonLimits{64 * 1024, 16});
  if (!json) return json.error();
  if (!json->is_object()) return make_error_code(Error::malformed);
  return EndpointFields{endpoint_field(*json, "challenge"),         endpoint_field(*json, "attestationObject"),
                        endpoint_field(*json, "registrationToken"), endpoint_field(*json, "verifier"),
                        endpoint_field(*json, "assertion"),         endpoint_field(*json, "signature")};
}

}  // namespace tandem::protocol

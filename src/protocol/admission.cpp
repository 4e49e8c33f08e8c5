#include "tandem/protocol/admission.hpp"

#include "tandem/core/json.hpp"

#include <nlohmann/json.hpp>

namespace tandem::protocol {
namespace {

constexpr JsonLimits kLimits{kAdmissionMessageBytes, 16};

std::optional<std::string> text_field(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return it->get<std::string>();
}

}  // namespace

Result<Hello> parse_hello(std::string_view message) {
  Result<Json> json = parse_json(message, kLimits);
  if (!json) return json.error();
  if (!json->is_object()) return make_error_code(Error::malformed);
  const auto v = json->find("v");
  if (v == json->end()) return make_error_code(Error::missing_field);
  if (!v->is_number_integer() || *v != 1) return make_error_code(Error::bad_value);
  const std::optional<std::string> role = text_field(*json, "role");
  if (!role) return make_error_code(Error::missing_field);
  Hello hello;
  if (*role == to_string(Role::phone)) {
    hello.role = Role::phone;
  } else if (*role != to_string(Role::mac)) {
    return make_error_code(Error::bad_value);
  }
  const auto polite = json->find("nonDisplacing");
  hello.non_displacing = polite != json->end() && polite->is_boolean() && polite->get<bool>();
  return hello;
}

Result<Proof> parse_proof(std::string_view message) {
  Result<Json> json = parse_json(message, kLimits);
  if (!json) return json.error();
  if (!json->is_object()) return make_error_code(Error::malformed);
  return Proof{text_field(*json, "sig"), text_field(*json, "ticket")};
}

std::string nonce_message(ByteView nonce) { return R"({"nonce":")" + base64_encode(nonce) + R"("})"; }

std::string admitted_message() { return R"({"ok":true})"; }

std::string admitted_message(ByteView registration_token) {
  return R"({"ok":true,"registrationToken":")" + base64_encode(registration_token) + R"("})";
}

std::string refused_message(CloseReason reason) {
  return R"({"ok":false,"error":")" + std::string(close_text(reason)) + R"("})";
}

std::string hello_message(Role role, bool non_displacing) {
  Json json = {{"v", 1}, {"role", to_string(role)}};
  if (non_displacing) json["nonDisplacing"] = true;
  return json.dump();
}

std::string proof_message(const Proof& proof) {
  Json json = Json::object();
  if (proof.signature) json["sig"] = *proof.signature;
  if (proof.ticket) json["ticket"] = *proof.ticket;
  return json.dump();
}

}  // namespace tandem::protocol

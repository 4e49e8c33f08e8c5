// JSON from strangers, as the first messages of a socket and the bodies of the POST endpoints: all readers agree on
// what an object is, what is read can be written and read again, and base64 has one spelling.
#include "tandem/core/json.hpp"
#include "tandem/protocol/admission.hpp"
#include "tandem/protocol/endpoint.hpp"

#include <cstdint>
#include <cstdlib>

#include <nlohmann/json.hpp>

namespace {

using namespace tandem;

void must(bool good) {
  if (!good) std::abort();
}

void check_base64(const std::optional<std::string>& text, std::size_t most) {
  if (!text) return;
  must(text->size() <= most);
  if (const auto bytes = base64_decode(*text)) must(base64_encode(*bytes) == *text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = parse_json(text, JsonLimits{64 * 1024, 16});
  if (json) must(parse_json(json->dump(), JsonLimits{1024 * 1024, 16}).value() == *json);

  const auto fields = protocol::parse_endpoint_body(text);
  must(fields.has_value() == (json && json->is_object()));
  if (!fields) {
    must(!protocol::parse_hello(text) && !protocol::parse_proof(text));
    return 0;
  }
  for (const auto& field : {fields->challenge, fields->attestation_object, fields->registration_token, fields->verifier,
                            fields->assertion, fields->signature}) {
    check_base64(field, size);
  }
  if (const auto proof = protocol::parse_proof(text)) {
    check_base64(proof->ticket, size);
    check_base64(proof->signature, size);
    const auto again = protocol::parse_proof(protocol::proof_message(*proof));
    must(again && again->ticket == proof->ticket && again->signature == proof->signature);
  }
  if (const auto hello = protocol::parse_hello(text)) {
    const auto again = protocol::parse_hello(protocol::hello_message(hello->role, hello->non_displacing));
    must(again && again->role == hello->role && again->non_displacing == hello->non_displacing);
  }
  return 0;
}

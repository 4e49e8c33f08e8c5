#include "tandem/protocol/attest.hpp"

namespace tandem::protocol {

namespace {

struct Names {
  std::string_view label, text;
};

constexpr Names names(AttestFault f) noexcept {
  switch (f) {
    case AttestFault::not_configured: return {"not_configured", "not configured"};
    case AttestFault::bad_base64: return {"bad_base64", "bad base64"};
    case AttestFault::bad_cbor: return {"bad_cbor", "bad CBOR"};
    case AttestFault::missing_field: return {"missing_field", "missing field"};
    case AttestFault::wrong_format: return {"wrong_format", "wrong format"};
    case AttestFault::wrong_chain_length: return {"wrong_chain_length", "wrong chain length"};
    case AttestFault::bad_certificate: return {"bad_certificate", "bad certificate"};
    case AttestFault::not_a_ca: return {"not_a_ca", "not a certificate authority"};
    case AttestFault::untrusted: return {"untrusted", "untrusted chain"};
    case AttestFault::expired: return {"expired", "outside validity"};
    case AttestFault::no_nonce: return {"no_nonce", "no nonce"};
    case AttestFault::wrong_nonce: return {"wrong_nonce", "wrong nonce"};
    case AttestFault::wrong_key_type: return {"wrong_key_type", "wrong key type"};
    case AttestFault::wrong_key_id: return {"wrong_key_id", "wrong key id"};
    case AttestFault::wrong_app: return {"wrong_app", "wrong app"};
    case AttestFault::wrong_environment: return {"wrong_environment", "wrong environment"};
    case AttestFault::wrong_counter: return {"wrong_counter", "wrong counter"};
    case AttestFault::short_data: return {"short_data", "authenticator data too short"};
    case AttestFault::bad_signature: return {"bad_signature", "bad signature"};
  }
  return {"other", "other"};
}

}  // namespace

std::string_view label(AttestFault f) noexcept { return names(f).label; }
std::string_view to_string(AttestFault f) noexcept { return names(f).text; }

}  // namespace tandem::protocol

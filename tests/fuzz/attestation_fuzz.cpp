// Attestation objects from strangers. The certificates of the seeds are real, so mutations reach every check; what is
// accepted must be for the very key and challenge that the seeds were made for, as nobody here can sign another.
#include "tandem/protocol/attest.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace tandem;
using namespace tandem::protocol;

// The throwaway root, app and challenge of tests/vectors/appattest_synthetic.json.
constexpr std::string_view kRoot = R"(-----BEGIN CERTIFICATE-----
MIIBNzCB3qADAgECAgEBMAoGCCqGSM49BAMCMBsxGTAXBgNVBAMMEFRlc3QgQXR0
ZXN0IFJvb3QwHhcNMjAwMTAxMDAwMDAwWhcNNDUwMTAxMDAwMDAwWjAbMRkwFwYD
VQQDDBBUZXN0IEF0dGVzdCBSb290MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
2sSu50shealtw0J0hJYrV3DTAo0vMVuQ5uiWkyfkshJsLFtSpwY0XdrUBB08ODgW
WMKRiPi9K65rNYtGIMxV3qMTMBEwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQD
AgNIADBFAiBActJ/tB4MwxPRYVnT8i3Cs0MXpbqlsQl84EyF5pu4tgIhAP2TSgcT
5dG0PwDh9LPBsfTpuHK6RCjemtjIcXM4zi8I
-----END CERTIFICATE-----)";
constexpr std::string_view kApp = "TEAMID1234.com.example.companion";
constexpr std::string_view kHash = "45769670b8f5f36fa8bacbbce06d77e4d7db78d20ab0c069f21ca33847440e4c";
constexpr std::string_view kKeyId = "1f25b0ed0f161a8365077d6d794cf3ee49567ca9ef8427c55eabc8d900e9d424";

Sha256 client_data_hash() {
  const Bytes raw = hex_decode(kHash).value();
  Sha256 hash{};
  std::copy_n(raw.begin(), hash.size(), hash.begin());
  return hash;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static AttestationVerifier verifier(
      {std::string(kApp), AttestEnvironment::production, parse_root_certificates(kRoot).value()});
  static const Sha256 hash = client_data_hash();
  const WallTime now{std::chrono::sys_days{std::chrono::year{2026} / 6 / 1}};
  const auto outcome = verifier.verify({data, size}, hash, now);
  if (!outcome) {
    if (label(outcome.error()) == "other") std::abort();
    return 0;
  }
  if (hex_encode(outcome->key_id) != kKeyId || sha256(outcome->point) != outcome->key_id) std::abort();
  return 0;
}

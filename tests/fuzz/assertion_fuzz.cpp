// Assertions from strangers, against the key that made the seeds: what is accepted was signed, so only its CBOR may
// differ.
#include "tandem/protocol/attest.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace tandem;
using namespace tandem::protocol;

// The app, challenge and public key of tests/vectors/appattest_synthetic.json.
constexpr std::string_view kApp = "TEAMID1234.com.example.companion";
constexpr std::string_view kHash = "45769670b8f5f36fa8bacbbce06d77e4d7db78d20ab0c069f21ca33847440e4c";
constexpr std::string_view kPoint =
    "BORmLbe6wZ3B/F2sn1K8bsibq7JcOqhHOBWLUCvAhZ0NPRc+P7YrJ21SSnCltQUJAz2g53ZrdYa+T9uMeBuWGH8=";

template <std::size_t size>
std::array<std::uint8_t, size> exactly(const Bytes& raw) {
  std::array<std::uint8_t, size> out{};
  if (raw.size() != size) std::abort();
  std::copy(raw.begin(), raw.end(), out.begin());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sha256 hash = exactly<32>(hex_decode(kHash).value());
  static const P256Point point = exactly<65>(base64_decode(kPoint).value());
  const auto counter = verify_assertion({data, size}, point, kApp, hash);
  if (counter && *counter != 1) std::abort();
  if (!counter && to_string(counter.error()).empty()) std::abort();
  return 0;
}

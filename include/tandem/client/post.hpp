// One POST to a relay, on a connection of its own (1-wire 1.6), and the two exchanges made of several: attesting for a
// ticket, and registering the verifier.
//
// Each returns a handle; dropping it ends the exchange, and its callback is never called after. Callbacks come from the
// loop.
#pragma once

#include "tandem/client/ending.hpp"
#include "tandem/client/tls_socket.hpp"
#include "tandem/core/crypto.hpp"
#include "tandem/core/ids.hpp"
#include "tandem/core/time.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

namespace tandem::client {

struct PostRequest {
  std::string path;  // "/register"
  RoomName room;
  std::string body;  // JSON
  Duration patience = seconds(10);
};
struct PostAnswer {
  std::uint16_t status = 0;
  std::string body;

  [[nodiscard]] bool ok() const noexcept { return status == 200; }
  [[nodiscard]] std::string field(const char* name) const;  // a string of the JSON body; empty where there is none
  [[nodiscard]] std::string error() const { return field("error"); }
};
using PostResult = std::variant<PostAnswer, NoConnection>;

class PostCall {
 public:
  virtual ~PostCall() = default;
};
using PostHandle = std::shared_ptr<PostCall>;

[[nodiscard]] PostHandle post(boost::asio::io_context& loop, TlsTrust trust, const Destination& destination,
                              const PostRequest& request, std::function<void(const PostResult&)> done);

// What a phone's secure element does: a test or a simulation brings its own keys.
class Attestor {
 public:
  virtual ~Attestor() = default;
  // CBOR, for SHA-256(canonical("iterm2-relay-attest", [challenge, origin])).
  [[nodiscard]] virtual Bytes attestation(const Sha256& client_data_hash) = 0;
  [[nodiscard]] virtual Bytes assertion(const Sha256& client_data_hash) = 0;  // by the key attested last
};

// Challenge, attestation, ticket. Success: the ticket.
[[nodiscard]] PostHandle attest(boost::asio::io_context& loop, const TlsTrust& trust, const Destination& destination,
                                const RoomName& room, Attestor& attestor,
                                const std::function<void(const std::variant<std::string, Ending>&)>& done);

// Registers the verifier; with an attestor, a challenge is fetched and an assertion comes along. `already registered`
// is success (2-sharding 2.8.7): nothing.
[[nodiscard]] PostHandle register_verifier(boost::asio::io_context& loop, const TlsTrust& trust,
                                           const Destination& destination, const RoomName& room,
                                           const std::string& registration_token, const Ed25519PublicKey& verifier,
                                           Attestor* attestor,
                                           const std::function<void(const std::optional<Ending>&)>& done);

}  // namespace tandem::client

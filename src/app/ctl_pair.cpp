// tandemctl pair: mints a pairing for a relay and shows it as a phone wants to see it.
#include "tandem/app/ctl.hpp"
#include "tandem/app/qr.hpp"
#include "tandem/config/load.hpp"
#include "tandem/core/base64.hpp"
#include "tandem/protocol/pairing_url.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <openssl/rand.h>

namespace tandem::app {
namespace {

struct PairOptions {
  std::string config, key_file;
  bool json = false;
};

struct KeyPair {
  std::array<std::uint8_t, 32> secret{}, shared{};
};

std::optional<KeyPair> mint_x25519() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"),
                                                                &EVP_PKEY_free);
  KeyPair pair;
  std::size_t secret_size = pair.secret.size(), shared_size = pair.shared.size();
  const bool minted = key && EVP_PKEY_get_raw_private_key(key.get(), pair.secret.data(), &secret_size) == 1 &&
                      EVP_PKEY_get_raw_public_key(key.get(), pair.shared.data(), &shared_size) == 1;
  return minted ? std::optional(pair) : std::nullopt;
}

// Empty on success.
std::string write_key(const std::string& path, ByteView secret) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno == EEXIST ? path + " exists; it is left as it is" : std::generic_category().message(errno);
  const std::string line = base64_encode(secret) + "\n";
  const bool whole = ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  ::close(fd);
  return whole ? std::string{} : "cannot write " + path;
}

int pair(const PairOptions& options) {
  const auto loaded = config::load(options.config);
  if (const auto* error = std::get_if<config::ConfigError>(&loaded)) return fail("pair: " + error->one_line());
  const auto& config = std::get<config::Config>(loaded);

  const auto key = mint_x25519();
  std::array<std::uint8_t, 16> id{};
  if (!key || RAND_bytes(id.data(), static_cast<int>(id.size())) != 1)
    return fail("pair: OpenSSL could not mint a key");
  if (!options.key_file.empty()) {
    if (const std::string fault = write_key(options.key_file, key->secret); !fault.empty())
      return fail("pair: --key " + options.key_file + ": " + fault);
  }

  protocol::PairingUrl pairing;
  pairing.rs = key->shared;
  pairing.pid = hex_encode(id);
  pairing.resolved = config.resolved();
  pairing.where = config.resolved() ? config.shard_map->url : config.authority().origin();
  const std::string url = protocol::build_pairing_url(pairing);
  const RoomName room = pairing.room();

  if (options.json) {
    const nlohmann::json line = {
        {"ok", true},         {"url", url},        {"mode", config.resolved() ? "resolved" : "direct"},
        {"room", room.hex()}, {"tag", room.tag()}, {"bucket", room.bucket().value},
        {"pid", pairing.pid}};
    std::cout << line.dump() << "\n";
    return kOk;
  }
  const auto drawn = draw_qr(url);
  if (!drawn) return fail("pair: the URL is too long for a QR code: " + url);
  std::cout << url << "\n\n" << *drawn << "\nroom tag " << room.tag() << ", bucket " << room.bucket().value << "\n";
  return kOk;
}

}  // namespace

void add_pair(Ctl& ctl) {
  auto options = std::make_shared<PairOptions>();
  CLI::App* command = ctl.app->add_subcommand("pair", "Mint a pairing and print its URL and QR code");
  command->add_option("--config", options->config, "The relay's configuration file")->type_name("FILE")->required();
  command->add_option("--key", options->key_file, "Keep the mac's private key (base64) in a new file")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print one JSON object, without the QR code");
  command->callback([&ctl, options] { ctl.run = [options] { return pair(*options); }; });
}

}  // namespace tandem::app

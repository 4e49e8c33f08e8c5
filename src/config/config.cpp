#include "tandem/config/config.hpp"

#include "tandem/config/schema.hpp"

#include <cassert>

namespace tandem::config {
namespace {

// The schema's list of words is the only place where they are written.
std::string_view word(std::string_view path, std::size_t index) {
  for (const Key& key : keys()) {
    if (key.path == path) return key.rule.choices.at(index);
  }
  assert(false);
  return {};
}

}  // namespace

std::string_view to_string(TlsVersion v) noexcept { return word("tls.min_version", static_cast<std::size_t>(v)); }
std::string_view to_string(ProxyTrust t) noexcept { return word("proxy.trust", static_cast<std::size_t>(t)); }
std::string_view to_string(AttestEnvironment e) noexcept {
  return word("attest.environment", static_cast<std::size_t>(e));
}
std::string_view to_string(LogLevel l) noexcept { return word("log.level", static_cast<std::size_t>(l)); }
std::string_view to_string(LogFormat f) noexcept { return word("log.format", static_cast<std::size_t>(f)); }

}  // namespace tandem::config

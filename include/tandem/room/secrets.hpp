// The short-lived secrets of one room: challenges, tickets and registration tokens (1-wire 1.4, 1.6). Each lives five
// minutes, is single-use, belongs to this room, and at most 16 of each kind live at once. Memory only: never stored.
//
// Nothing here knows what a secret is for; the caller spends it at the right moment. Comparisons take constant time.
#pragma once

#include "tandem/core/crypto.hpp"
#include "tandem/core/random.hpp"
#include "tandem/core/time.hpp"
#include "tandem/room/limits.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tandem::room {

// An App Attest key as this process knows it. Shared by all tickets and tokens it earned, in whatever room, so that its
// counter increases over all of them.
struct AttestedKey {
  Sha256 id{};
  std::array<std::uint8_t, 65> point{};
  std::uint32_t counter = 0;  // the newest one seen in a verified assertion
};
using AttestedKeyPtr = std::shared_ptr<AttestedKey>;

// At most 16 live secrets of one kind, oldest first, each with what it stands for.
template <std::size_t Size, class Payload>
class SecretPool {
 public:
  using Secret = std::array<std::uint8_t, Size>;

  [[nodiscard]] Secret issue(Payload payload, RandomSource& random, TimePoint now) {
    Entry e{{}, now + kSecretLifetime, std::move(payload)};
    random.fill(e.secret);
    entries_.push_back(std::move(e));
    return entries_.back().secret;
  }
  // The payload of a live secret, else null.
  [[nodiscard]] Payload* find(ByteView secret, TimePoint now) {
    for (Entry& e : entries_) {
      if (e.expires > now && equal_secrets(e.secret, secret)) return &e.payload;
    }
    return nullptr;
  }
  [[nodiscard]] std::optional<Payload> spend(ByteView secret, TimePoint now) {
    Payload* found = find(secret, now);
    if (!found) return std::nullopt;
    Payload payload = std::move(*found);
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      if (&it->payload == found) {
        entries_.erase(it);
        break;
      }
    }
    return payload;
  }
  void drop_oldest() { entries_.erase(entries_.begin()); }
  void purge(TimePoint now) {
    std::erase_if(entries_, [&](const Entry& e) { return e.expires <= now; });
    if (entries_.empty()) entries_.shrink_to_fit();
  }
  [[nodiscard]] bool is_full() const noexcept { return entries_.size() >= kSecretsPerRoom; }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
  [[nodiscard]] TimePoint next_expiry() const noexcept { return entries_.empty() ? kNever : entries_.front().expires; }

 private:
  struct Entry {
    Secret secret;
    TimePoint expires;
    Payload payload;
  };
  std::vector<Entry> entries_;
};

class Secrets {
 public:
  struct Nothing {};
  using Challenges = SecretPool<32, Nothing>;
  using Tickets = SecretPool<24, AttestedKeyPtr>;
  using Tokens = SecretPool<24, AttestedKeyPtr>;  // null: the admission that earned it was not attested

  Challenges challenges;
  Tickets tickets;
  Tokens tokens;

  void purge(TimePoint now) {
    challenges.purge(now);
    tickets.purge(now);
    tokens.purge(now);
  }
  [[nodiscard]] bool empty() const noexcept { return challenges.size() + tickets.size() + tokens.size() == 0; }
  [[nodiscard]] TimePoint next_expiry() const noexcept {
    return std::min({challenges.next_expiry(), tickets.next_expiry(), tokens.next_expiry()});
  }
};

}  // namespace tandem::room

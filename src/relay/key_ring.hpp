// The App Attest keys this process has lately verified, each once, so that its counter increases over all rooms
// whatever tickets and tokens hold it. What nobody holds any more goes, oldest first: the store knows its counter
// (effect::StoreRoom carried it).
#pragma once

#include "tandem/core/siphash.hpp"
#include "tandem/relay/event.hpp"
#include "tandem/room/secrets.hpp"

#include <algorithm>
#include <deque>
#include <unordered_map>

namespace tandem::relay {

class KeyRing {
 public:
  static constexpr std::size_t kIdleKeys = 4096;

  explicit KeyRing(SipKey key) : keys_(0, Hash{key}) {}

  [[nodiscard]] room::AttestedKeyPtr intern(const AttestedKey& key) {
    for (int i = 0; i < 2 && order_.size() >= kIdleKeys; ++i) {  // two out for one in: it shrinks again after a flood
      room::AttestedKeyPtr oldest = std::move(order_.front());
      order_.pop_front();
      if (oldest.use_count() > 2) {
        order_.push_back(std::move(oldest));
      } else {
        keys_.erase(oldest->id);
      }
    }
    auto [it, is_new] = keys_.try_emplace(key.id);
    if (is_new) {
      it->second = std::make_shared<room::AttestedKey>(room::AttestedKey{key.id, key.point, key.counter});
      order_.push_back(it->second);
    } else {
      it->second->counter = std::max(it->second->counter, key.counter);
    }
    return it->second;
  }
  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }

 private:
  struct Hash {
    SipKey key;
    std::size_t operator()(const KeyId& id) const noexcept { return siphash24(key, id); }
  };
  std::unordered_map<KeyId, room::AttestedKeyPtr, Hash> keys_;
  std::deque<room::AttestedKeyPtr> order_;  // by first sight
};

}  // namespace tandem::relay

// How much each client may still ask for: N per minute, in a minute opened by its first request after the last one
// (1-wire 1.3, row 5). Keyed by client; the table is bounded, whatever a flood of distinct addresses does: over the
// bound the oldest minute is forgotten. Windows all have one length, so the oldest is also the first to end, and every
// call is O(1).
#pragma once

#include "tandem/core/ids.hpp"
#include "tandem/core/siphash.hpp"
#include "tandem/core/time.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory_resource>
#include <unordered_map>

namespace tandem::room {

class RateWindows {
 public:
  static constexpr std::size_t kDefaultClients = 65536;  // about 10 MiB at worst

  explicit RateWindows(SipKey key, Duration window = seconds(60), std::size_t max_clients = kDefaultClients);

  // Counts one request, or says in how long the client may ask again (above zero); a refused one is not counted.
  [[nodiscard]] Duration charge(const ClientKey& client, std::uint32_t limit, TimePoint now);
  void purge(TimePoint now);  // forgets minutes that are over
  [[nodiscard]] std::size_t clients() const noexcept { return windows_.size(); }

 private:
  struct Window {
    ClientKey client;
    TimePoint start;
    std::uint32_t count = 0;
  };
  using Windows = std::pmr::list<Window>;
  Duration window_;
  std::size_t max_clients_;
  // Of their own: entries that live for a minute among all that comes and goes would keep a page each from being given
  // back.
  std::pmr::unsynchronized_pool_resource pool_;
  Windows windows_{&pool_};  // by start, ascending
  std::pmr::unordered_map<ClientKey, Windows::iterator, KeyedHash> by_client_;
};

}  // namespace tandem::room

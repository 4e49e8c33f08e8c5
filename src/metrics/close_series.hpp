// closes_total{by,code,reason}: the fixed list of what can be counted, and which of it one ended WebSocket is. A
// client's own codes fall into few buckets, so that nobody can grow the list.
#pragma once

#include "tandem/core/observer.hpp"

#include <map>
#include <string>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/family.h>

namespace tandem::metrics {

class CloseSeries {
 public:
  explicit CloseSeries(prometheus::Family<prometheus::Counter>& family);
  void count(const observed::SocketEnded& ended);

 private:
  struct Key {
    Initiator by;
    CloseReason reason;
    std::string code;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, prometheus::Counter*> series_;
  std::map<Initiator, prometheus::Counter*> other_;
};

// "1000", "3xxx", "4xxx" or "other": what a client's close code counts as.
[[nodiscard]] std::string client_code_label(std::uint16_t code);

}  // namespace tandem::metrics

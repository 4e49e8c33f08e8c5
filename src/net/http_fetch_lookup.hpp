// Name look-ups that never block the loop, nor its end: each runs in a thread of its own, which nobody waits for. A
// resolver that hangs holds a few threads at most; further look-ups then fail at once instead of queueing behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>

namespace tandem::net {

struct LookupResult {
  std::vector<boost::asio::ip::address> addresses;  // families alternate, the system's first choice first
  std::string error;                                // the system's word, where there is no address
};

// Destroying it drops the answer; the callback is then never called.
class Lookup {
 public:
  using Done = std::function<void(LookupResult)>;
  // The loop must have other work until `done` was called (the caller's deadline timer).
  Lookup(boost::asio::io_context& loop, const std::string& host, Done done);
  ~Lookup();
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace tandem::net

#include "http_fetch_lookup.hpp"

#include "tandem/core/authority.hpp"
#include "tandem/net/stop_signals.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <netdb.h>
#include <sys/socket.h>
#include <system_error>
#include <thread>

#include <boost/asio/post.hpp>

namespace tandem::net {

namespace asio = boost::asio;

namespace {

constexpr int kMaxThreads = 8;
std::atomic<int> threads{0};

// IPv6 and IPv4 in turn (RFC 8305, section 4), so that one broken family costs one connection attempt, not all of them.
std::vector<asio::ip::address> alternate(const std::vector<asio::ip::address>& in) {
  std::vector<asio::ip::address> first, second, out;
  for (const auto& a : in) (a.is_v6() == in.front().is_v6() ? first : second).push_back(a);
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) out.push_back(first[i]);
    if (i < second.size()) out.push_back(second[i]);
  }
  return out;
}

LookupResult resolve(const std::string& host) {
  LookupResult result;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int rc = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (rc != 0 && is_localhost(host)) {
    result.addresses = {asio::ip::address_v6::loopback(), asio::ip::address_v4::loopback()};
    return result;
  }
  if (rc != 0) {
    result.error = rc == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(rc);
    return result;
  }
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET) {
      sockaddr_in in{};
      std::memcpy(&in, a->ai_addr, sizeof in);
      result.addresses.emplace_back(asio::ip::address_v4(ntohl(in.sin_addr.s_addr)));
    } else if (a->ai_family == AF_INET6) {
      sockaddr_in6 in{};
      std::memcpy(&in, a->ai_addr, sizeof in);
      asio::ip::address_v6::bytes_type bytes;
      std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
      result.addresses.emplace_back(asio::ip::address_v6(bytes, in.sin6_scope_id));
    }
  }
  ::freeaddrinfo(list);
  if (result.addresses.empty()) result.error = "the name has no address";
  result.addresses = alternate(result.addresses);
  return result;
}

}  // namespace

struct Lookup::Shared {
  std::mutex mutex;
  asio::io_context* loop;  // null once nobody waits any more
  Done done;               // touched by the loop's thread alone
};

Lookup::Lookup(asio::io_context& loop, const std::string& host, Done done) : shared_(std::make_shared<Shared>()) {
  shared_->loop = &loop;
  shared_->done = std::move(done);
  const auto deliver = [](const std::shared_ptr<Shared>& shared, LookupResult result) {
    const std::lock_guard lock(shared->mutex);
    if (shared->loop == nullptr) return;
    asio::post(*shared->loop, [shared, result = std::move(result)]() mutable {
      if (Done d = std::exchange(shared->done, nullptr)) d(std::move(result));
    });
  };
  if (threads.fetch_add(1) >= kMaxThreads) {
    threads.fetch_sub(1);
    deliver(shared_, {{}, "earlier look-ups still wait for the resolver"});
    return;
  }
  try {
    const StopSignalsBlocked blocked;
    std::thread([shared = shared_, host, deliver] {
      LookupResult result = resolve(host);
      threads.fetch_sub(1);
      deliver(shared, std::move(result));
    }).detach();
  } catch (const std::system_error& e) {
    threads.fetch_sub(1);
    deliver(shared_, {{}, e.code().message()});
  }
}

Lookup::~Lookup() {
  const std::lock_guard lock(shared_->mutex);
  shared_->loop = nullptr;
  shared_->done = nullptr;
}

}  // namespace tandem::net

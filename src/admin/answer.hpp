// What each request to the admin listener gets: routing, without a socket.
#pragma once

#include "tandem/admin/server.hpp"

#include <string>
#include <string_view>

namespace tandem::admin {

struct Request {
  std::string_view method, target;
  std::string_view host;  // of the one Host header; empty: none, or more than one
  bool keep_alive = false;
};

// The whole answer, head and body; `keep_alive` says whether the connection may serve another.
struct Answer {
  std::string bytes;
  bool keep_alive = false;
};

[[nodiscard]] Answer answer(const AdminSource& source, const Request& request);
[[nodiscard]] Answer refuse(std::uint16_t status, std::string_view why);  // and close

}  // namespace tandem::admin

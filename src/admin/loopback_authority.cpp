#include "tandem/admin/server.hpp"

#include <algorithm>
#include <string>

#include <boost/asio/ip/address.hpp>

namespace tandem::admin {

namespace asio = boost::asio;

bool is_loopback_authority(std::string_view host_header) {
  std::string host;
  std::string_view port;
  if (host_header.starts_with('[')) {
    const auto end = host_header.find(']');
    if (end == std::string_view::npos) return false;
    host = host_header.substr(1, end - 1);
    port = host_header.substr(end + 1);
    boost::system::error_code ec;
    const auto address = asio::ip::make_address_v6(host, ec);
    if (ec || !address.is_loopback()) return false;
  } else {
    const auto colon = host_header.find(':');
    host = host_header.substr(0, colon);
    port = colon == std::string_view::npos ? std::string_view{} : host_header.substr(colon);
    std::transform(host.begin(), host.end(), host.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    boost::system::error_code ec;
    const auto address = asio::ip::make_address_v4(host, ec);
    if (host != "localhost" && (ec || !address.is_loopback())) return false;
  }
  if (port.empty()) return true;
  return port.size() <= 6 && port[0] == ':' &&
         std::all_of(port.begin() + 1, port.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace tandem::admin

// Whom a fetch believes: TLS contexts with the system's CAs or one CA file, kept until the files behind them change.
#pragma once

#include "tandem/net/http_fetch.hpp"

#include <map>

#include <boost/asio/ssl/context.hpp>

namespace tandem::net {

struct HttpFetcher::Trust {
  // Null where the CA file cannot be used; error then says why.
  [[nodiscard]] std::shared_ptr<boost::asio::ssl::context> context_for(const std::string& ca_file, std::string& error);

 private:
  struct Entry {
    std::string stamp;  // of the files it was read from
    std::shared_ptr<boost::asio::ssl::context> context;
  };
  std::map<std::string, Entry> entries_;
};

// Makes the session check the peer's certificate for the host, a name or an address literal, and sends SNI for a name.
void expect_host(SSL* session, const std::string& host);
// "certificate verify failed: unable to get local issuer certificate", or the error's own words.
[[nodiscard]] std::string handshake_fault(SSL* session, const boost::system::error_code& ec);

}  // namespace tandem::net

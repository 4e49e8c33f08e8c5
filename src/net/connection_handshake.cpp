// A connection before it speaks HTTP: the PROXY header and the TLS handshake.
#include "net/connection.hpp"
#include "net/http_session.hpp"
#include "net/loop.hpp"

#include <openssl/ssl.h>

namespace tandem::net {

void Connection::read_proxy_header() {
  switch (transport_.fill(kEntryRead)) {
    case Transport::Status::ok: break;
    case Transport::Status::dry: return;
    default: return destroy();
  }
  const auto fresh = transport_.received();
  stash_->append(reinterpret_cast<const char*>(fresh.data()), fresh.size());
  const bool trusted = loop_.settings.proxy.trusts(remote_);
  const auto parsed = parse_proxy_header(*stash_);
  if (std::holds_alternative<ProxyNeedMore>(parsed)) {
    if (stash_->size() > kMaxProxyHeader) destroy();
    return;
  }
  std::size_t used = 0;
  if (const auto* header = std::get_if<ProxyHeader>(&parsed)) {
    used = header->size;
    if (trusted && header->client) client_ = header->client->key();
  } else if (trusted) {
    return destroy();  // unanswered
  }
  // Not one whose word counts: with or without a header it is a client like any other.
  const std::string rest = stash_->substr(used);
  stash_.reset();
  begin_handshake();
  if (rest.empty()) return;
  transport_.prefill({reinterpret_cast<const std::uint8_t*>(rest.data()), rest.size()});
  if (phase_ == Phase::handshake)
    go_on_handshake();
  else
    take_in();
}

void Connection::begin_handshake() {
  if (loop_.tls == nullptr) {
    phase_ = Phase::http;
    http_ = std::make_unique<HttpSession>();
  } else {
    phase_ = Phase::handshake;  // the SSL object is made when the first bytes are here: it is dear
  }
}

void Connection::go_on_handshake() {
  if (!transport_.is_tls()) {
    SSL* ssl = loop_.tls != nullptr ? loop_.tls->new_session() : nullptr;
    if (ssl == nullptr) return destroy();
    transport_.start_tls(ssl);
  }
  const Transport::Status status = transport_.handshake();
  if (status == Transport::Status::dry) return;
  loop_.observe(
      observed::TlsHandshake{status == Transport::Status::ok, transport_.resumed_session(), loop_.mono() - opened_});
  if (status != Transport::Status::ok) {
    ended_ = true;
    return finish();  // lets the alert arrive
  }
  phase_ = Phase::http;
  http_ = std::make_unique<HttpSession>();
  deadline_ = loop_.mono() + loop_.settings.request;
  reschedule();
  take_in();  // a client may send its request right behind its Finished
}

}  // namespace tandem::net

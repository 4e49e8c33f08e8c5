#include "tandem/net/tls_context.hpp"

#include "net/certificate_parts.hpp"
#include "tandem/net/clock.hpp"

#include <array>
#include <cstring>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/rand.h>

namespace tandem::net {

class TicketKeys {
 public:
  struct Key {
    std::array<unsigned char, 16> name{};
    std::array<unsigned char, 32> cipher{}, mac{};
    TimePoint born{};
    bool live = false;
  };

  // The key that encrypts now.
  Key& current(TimePoint now) {
    if (!keys_[0].live || now - keys_[0].born >= kLife) {
      keys_[1] = keys_[0];
      fresh(keys_[0], now);
    }
    if (keys_[1].live && now - keys_[1].born >= 2 * kLife) keys_[1] = Key{};
    return keys_[0];
  }

  // The live key of that name, null where it is none of ours.
  Key* find(const unsigned char* name, TimePoint now) {
    Key& newest = current(now);
    if (std::memcmp(newest.name.data(), name, newest.name.size()) == 0) return &newest;
    if (keys_[1].live && std::memcmp(keys_[1].name.data(), name, keys_[1].name.size()) == 0) return &keys_[1];
    return nullptr;
  }

  ~TicketKeys() { OPENSSL_cleanse(keys_.data(), sizeof keys_); }

 private:
  static constexpr Duration kLife = std::chrono::hours(12);

  static void fresh(Key& key, TimePoint now) {
    key.live = RAND_bytes(key.name.data(), static_cast<int>(key.name.size())) == 1 &&
               RAND_priv_bytes(key.cipher.data(), static_cast<int>(key.cipher.size())) == 1 &&
               RAND_priv_bytes(key.mac.data(), static_cast<int>(key.mac.size())) == 1;
    key.born = now;
  }

  std::array<Key, 2> keys_;
};

std::shared_ptr<TicketKeys> make_ticket_keys() { return std::make_shared<TicketKeys>(); }

namespace {

int ticket_keys_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// See SSL_CTX_set_tlsext_ticket_key_evp_cb(3): -1 fails the handshake, 0 means no ticket, 1 fine, 2 fine but give a new
// one.
int on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int encrypt) {
  auto* keys = static_cast<TicketKeys*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), ticket_keys_index()));
  const TimePoint now = monotonic_now();
  TicketKeys::Key* key = encrypt != 0 ? &keys->current(now) : keys->find(name, now);
  if (key == nullptr || !key->live) return 0;
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac.data(), key->mac.size()),
                               OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};
  if (EVP_MAC_CTX_set_params(mac, params) != 1) return -1;
  if (encrypt != 0) {
    std::memcpy(name, key->name.data(), key->name.size());
    if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return -1;
    return EVP_EncryptInit_ex2(cipher, EVP_aes_256_cbc(), key->cipher.data(), iv, nullptr) == 1 ? 1 : -1;
  }
  if (EVP_DecryptInit_ex2(cipher, EVP_aes_256_cbc(), key->cipher.data(), iv, nullptr) != 1) return -1;
  return key == &keys->current(now) ? 1 : 2;
}

// `http/1.1` where it is offered; else no extension is answered, which every client takes for HTTP/1.1.
int on_alpn(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size,
            void*) {
  static constexpr unsigned char wanted[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, wanted, sizeof wanted, in, in_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

std::variant<std::shared_ptr<const TlsContext>, Certificate::Fault> TlsContext::make(
    const Certificate& certificate, MinVersion min_version, std::shared_ptr<TicketKeys> tickets) {
  std::shared_ptr<TlsContext> out(new TlsContext);
  SSL_CTX* ctx = out->context_ = SSL_CTX_new(TLS_server_method());
  if (ctx == nullptr) return Certificate::Fault{"OpenSSL cannot make a TLS context"};
  out->tickets_ = std::move(tickets);

  const Certificate::Parts& parts = certificate.parts();
  bool fits = SSL_CTX_use_certificate(ctx, parts.leaf.get()) == 1 && SSL_CTX_use_PrivateKey(ctx, parts.key.get()) == 1;
  for (const X509Ptr& intermediate : parts.intermediates)
    fits = fits && SSL_CTX_add1_chain_cert(ctx, intermediate.get()) == 1;
  if (!fits) {
    const char* why = ERR_reason_error_string(ERR_peek_last_error());
    std::string message =
        std::string("OpenSSL refuses the certificate or key: ") + (why != nullptr ? why : "unknown reason");
    ERR_clear_error();
    return Certificate::Fault{std::move(message)};
  }

  SSL_CTX_set_min_proto_version(ctx, min_version == MinVersion::tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                               SSL_OP_PRIORITIZE_CHACHA);
  // Forward secrecy and AEAD only; AES-128 first, as half of a relay's work is AES.
  SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384");
  SSL_CTX_set_cipher_list(ctx, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL");
  SSL_CTX_set1_groups_list(ctx, "X25519:P-256:P-384");
  // A parked socket gives its record buffers back; a write buffer may move between a retry's calls.
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(ctx, 1);
  SSL_CTX_set_timeout(ctx, 24 * 60 * 60);
  static constexpr unsigned char id[] = "tandem";
  SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
  SSL_CTX_set_ex_data(ctx, ticket_keys_index(), out->tickets_.get());
  SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, &on_ticket);
  SSL_CTX_set_alpn_select_cb(ctx, &on_alpn, nullptr);
  ERR_clear_error();
  return std::shared_ptr<const TlsContext>(std::move(out));
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

ssl_st* TlsContext::new_session() const {
  SSL* ssl = SSL_new(context_);
  if (ssl != nullptr) SSL_set_accept_state(ssl);
  return ssl;
}

}  // namespace tandem::net

#include "unit/protocol/attest_mint.hpp"

#include <fstream>
#include <stdexcept>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace tandem::protocol::mint {

namespace {

void must(bool good) {
  if (!good) throw std::runtime_error("the minting of a test certificate failed");
}

void name_it(X509_NAME* name, const std::string& common_name) {
  must(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, bytes_of(common_name).data(), -1, -1, 0) == 1);
}

void extend(X509* certificate, int nid, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
  must(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

void extend_raw(X509* certificate, const char* oid, const Bytes& value) {
  ASN1_OBJECT* id = OBJ_txt2obj(oid, 1);
  ASN1_OCTET_STRING* octets = ASN1_OCTET_STRING_new();
  ASN1_OCTET_STRING_set(octets, value.data(), static_cast<int>(value.size()));
  X509_EXTENSION* extension = X509_EXTENSION_create_by_OBJ(nullptr, id, 0, octets);
  must(X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
  ASN1_OCTET_STRING_free(octets);
  ASN1_OBJECT_free(id);
}

Bytes sign(const Key& key, ByteView message) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  must(EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key.get()) == 1);
  std::size_t size = 0;
  must(EVP_DigestSign(context, nullptr, &size, message.data(), message.size()) == 1);
  Bytes signature(size);
  must(EVP_DigestSign(context, signature.data(), &size, message.data(), message.size()) == 1);
  signature.resize(size);
  EVP_MD_CTX_free(context);
  return signature;
}

}  // namespace

nlohmann::json vectors(std::string_view file) {
  std::ifstream in(std::string(TANDEM_VECTORS) + "/" + std::string(file));
  return nlohmann::json::parse(in);
}

Bytes unbase64(const nlohmann::json& text) { return base64_decode(text.get<std::string>()).value(); }

Sha256 hash_of_hex(const nlohmann::json& text) {
  const Bytes raw = hex_decode(text.get<std::string>()).value();
  Sha256 out{};
  std::copy_n(raw.begin(), out.size(), out.begin());
  return out;
}

Key load_key(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  must(key != nullptr);
  return {key, EVP_PKEY_free};
}

Key new_key(const char* group) { return {EVP_EC_gen(group), EVP_PKEY_free}; }

P256Point point_of(const Key& key) {
  P256Point point{};
  std::size_t size = 0;
  must(EVP_PKEY_get_octet_string_param(key.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size(), &size) == 1);
  return point;
}

Bytes Certificate::der() const {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 7);
  name_it(X509_get_subject_name(certificate), subject);
  name_it(X509_get_issuer_name(certificate), issuer);
  ASN1_TIME_set(X509_getm_notBefore(certificate), before.time_since_epoch().count());
  ASN1_TIME_set(X509_getm_notAfter(certificate), after.time_since_epoch().count());
  X509_set_pubkey(certificate, key.get());
  if (ca) extend(certificate, NID_basic_constraints, *ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!key_usage.empty()) extend(certificate, NID_key_usage, key_usage);
  for (const Bytes& value : nonce_extensions) extend_raw(certificate, "1.2.840.113635.100.8.2", value);
  must(X509_sign(certificate, signer.get(), EVP_get_digestbyname(digest.c_str())) > 0);
  unsigned char* encoded = nullptr;
  const int size = i2d_X509(certificate, &encoded);
  Bytes out(encoded, encoded + size);
  OPENSSL_free(encoded);
  X509_free(certificate);
  return out;
}

Bytes head(std::uint8_t major, std::uint64_t value) {
  const auto top = static_cast<std::uint8_t>(major << 5);
  if (value < 24) return {static_cast<std::uint8_t>(top | value)};
  std::uint8_t code = 24;
  int size = 1;
  while (size < 8 && value >> (8 * size) != 0) {
    size *= 2;
    ++code;
  }
  Bytes out{static_cast<std::uint8_t>(top | code)};
  for (int i = size - 1; i >= 0; --i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  return out;
}

Bytes text(std::string_view value) { return join({head(3, value.size()), Bytes(value.begin(), value.end())}); }
Bytes bytes(ByteView value) { return join({head(2, value.size()), Bytes(value.begin(), value.end())}); }

Bytes join(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

Authority Authority::synthetic() {
  const auto v = vectors("appattest_synthetic.json");
  return {load_key(v["root_key_pem"]), load_key(v["intermediate_key_pem"]),
          parse_root_certificates(v["root_pem"].get<std::string>()).value().front(),
          unbase64(v["intermediate_der_b64"]), v["app_id"]};
}

AttestPolicy Authority::policy() const { return {app_id, AttestEnvironment::production, {root}}; }

Bytes nonce_der(const Sha256& nonce) {
  return join({{0x30, 0x24, 0xa1, 0x22, 0x04, 0x20}, Bytes(nonce.begin(), nonce.end())});
}

Bytes auth_data(const Authority& authority, const Key& key, const Twist& twist) {
  if (twist.auth_data) return *twist.auth_data;
  const Sha256 app = sha256(bytes_of(twist.app_id.value_or(authority.app_id)));
  const Sha256 id = sha256(point_of(key));
  const Bytes credential = twist.credential.value_or(Bytes(id.begin(), id.end()));
  Bytes out(app.begin(), app.end());
  out.push_back(0x40);
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(twist.counter >> shift));
  out.insert(out.end(), twist.aaguid.begin(), twist.aaguid.end());
  out.push_back(static_cast<std::uint8_t>(credential.size() >> 8));
  out.push_back(static_cast<std::uint8_t>(credential.size()));
  out.insert(out.end(), credential.begin(), credential.end());
  return out;
}

Certificate leaf(const Authority& authority, const Key& key) {
  return {.subject = "Test Leaf",
          .issuer = "Test Attest CA",
          .key = key,
          .signer = authority.intermediate_key,
          .ca = false};
}

Bytes attestation(const Authority& authority, const Key& key, const Sha256& client_data_hash, const Twist& twist) {
  const Bytes data = auth_data(authority, key, twist);
  Bytes both = data;
  both.insert(both.end(), client_data_hash.begin(), client_data_hash.end());
  Certificate certificate = twist.leaf.value_or(leaf(authority, key));
  certificate.nonce_extensions = twist.nonce_extensions.value_or(std::vector<Bytes>{nonce_der(sha256(both))});
  const auto chain = twist.chain.value_or(std::vector<Bytes>{certificate.der(), authority.intermediate});
  Bytes x5c = head(4, chain.size());
  for (const Bytes& der : chain) x5c = join({x5c, bytes(der.empty() ? certificate.der() : der)});
  return join({head(5, 3), text("fmt"), text(twist.format), text("attStmt"), head(5, 2), text("x5c"), x5c,
               text("receipt"), bytes(Bytes{0}), text("authData"), bytes(data)});
}

Bytes assertion_over(const Key& key, const Bytes& authenticator_data, const Sha256& client_data_hash,
                     bool one_hash_short) {
  Bytes message = authenticator_data;
  message.insert(message.end(), client_data_hash.begin(), client_data_hash.end());
  const Sha256 nonce = sha256(message);
  const Bytes signature = one_hash_short ? sign(key, message) : sign(key, nonce);
  return join({head(5, 2), text("signature"), bytes(signature), text("authenticatorData"), bytes(authenticator_data)});
}

Bytes assertion(const Key& key, std::string_view app_id, std::uint32_t counter, const Sha256& client_data_hash,
                bool one_hash_short) {
  const Sha256 app = sha256(bytes_of(app_id));
  Bytes data(app.begin(), app.end());
  data.push_back(0x40);
  for (int shift = 24; shift >= 0; shift -= 8) data.push_back(static_cast<std::uint8_t>(counter >> shift));
  return assertion_over(key, data, client_data_hash, one_hash_short);
}

}  // namespace tandem::protocol::mint

// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_tls/key_exchange.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <string_view>

#include "shared/base/check.h"

namespace pnfsrdma::rpc_tls {
namespace {

// A key is bound to a digest (RFC 8446, 4.2.11): one cipher suite, so that both sides mean the same one.
constexpr const char* kSuite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> kSuiteNumber = {0x13, 0x01};

SSL_SESSION* session_of(SSL* ssl, const unsigned char* secret, size_t size) {
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session != nullptr && SSL_SESSION_set1_master_key(session, secret, size) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, kSuiteNumber.data())) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

const SharedKey& key_of(const SSL* ssl) {
  const auto* credentials = static_cast<const Credentials*>(SSL_get_ex_data(ssl, credentials_index()));
  CHECK(credentials != nullptr && credentials->key());
  return *credentials->key();
}

const unsigned char* bytes_of(const SharedKey& key) {
  return reinterpret_cast<const unsigned char*>(key.secret.data());
}

int offer(SSL* ssl, const EVP_MD* digest, const unsigned char** identity, size_t* size,
          SSL_SESSION** session) {
  *session = nullptr;
  // Behind a HelloRetryRequest for another suite there is no key.
  if (digest != nullptr && !EVP_MD_is_a(digest, "SHA256")) return 1;
  const SharedKey& key = key_of(ssl);
  *session = session_of(ssl, bytes_of(key), key.secret.size());
  *identity = reinterpret_cast<const unsigned char*>(key.identity.data());
  *size = key.identity.size();
  return *session == nullptr ? 0 : 1;
}

// Who names another identity fails as one with another key does, and learns no more.
int find(SSL* ssl, const unsigned char* identity, size_t size, SSL_SESSION** session) {
  const SharedKey& key = key_of(ssl);
  const std::string_view named(reinterpret_cast<const char*>(identity), size);
  std::array<unsigned char, sizeof key.secret> nobodys{};
  const bool ours = named == key.identity;
  if (!ours && RAND_priv_bytes(nobodys.data(), nobodys.size()) != 1) return 0;
  *session = session_of(ssl, ours ? bytes_of(key) : nobodys.data(), nobodys.size());
  return *session == nullptr ? 0 : 1;
}

}  // namespace

int credentials_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

bool use_shared_keys(SSL_CTX* context, Role role) {
  if (SSL_CTX_set_ciphersuites(context, kSuite) != 1 || credentials_index() < 0) return false;
  if (role == Role::kServer) {
    SSL_CTX_set_psk_find_session_callback(context, find);
  } else {
    SSL_CTX_set_psk_use_session_callback(context, offer);
  }
  return true;
}

}  // namespace pnfsrdma::rpc_tls

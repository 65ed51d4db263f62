// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_tls/credentials.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "shared/rpc/limits.h"
#include "shared/rpc/tls.h"
#include "shared/rpc_tls/key_exchange.h"

namespace pnfsrdma::rpc_tls {
namespace {

// A chain of certificates, like the whole handshake.
constexpr long kChainBytesMax = rpc::kTlsHandshakeBytesMax / 2;

std::unexpected<Error> wrong(const char* key, const std::string& path, const std::string& what) {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return fail(EINVAL, std::string(key) + ": " + path + " " + what +
                          (reason == nullptr ? "" : std::string(" (") + reason + ")"));
}

// "sunrpc" as a list of protocols (RFC 7301).
std::string protocol_list() {
  return static_cast<char>(rpc::kAlpnProtocol.size()) + std::string(rpc::kAlpnProtocol);
}

// A server's: takes what it knows, and refuses a client that does not offer it.
int choose_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned offered_size, void* /*unused*/) {
  static const std::string known = protocol_list();
  const int found = SSL_select_next_proto(const_cast<unsigned char**>(chosen), chosen_size,
                                          reinterpret_cast<const unsigned char*>(known.data()),
                                          static_cast<unsigned>(known.size()), offered, offered_size);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

void limit_to_rfc(SSL_CTX* context, Role role) {
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_max_cert_list(context, kChainBytesMax);
  // A connection that is silent holds no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  const std::string protocols = protocol_list();
  if (role == Role::kServer) {
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  } else {
    SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned>(protocols.size()));
  }
}

int days_of(const X509* certificate) {
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) != 1) return -1;
  return seconds < 0 ? days - 1 : days;
}

// Of the certificates that are trusted.
int days_of_authorities(SSL_CTX* context) {
  int least = std::numeric_limits<int>::max();
  const STACK_OF(X509_OBJECT)* const all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
    if (const X509* const authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i)))
      least = std::min(least, days_of(authority));
  }
  return least;
}

}  // namespace

Result<std::shared_ptr<const Credentials>> Credentials::load(Role role, const Files& files,
                                                             std::vector<std::string> peers) {
  ERR_clear_error();
  Context context(SSL_CTX_new(role == Role::kServer ? TLS_server_method() : TLS_client_method()));
  if (!context) return fail(ENOMEM, "SSL_CTX_new");
  limit_to_rfc(context.get(), role);
  if (SSL_CTX_load_verify_locations(context.get(), files.ca_file.c_str(), nullptr) != 1)
    return wrong("ca_file", files.ca_file, "has no certificates that can be read");
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return wrong("certificate", files.certificate, "has no certificate that can be read");
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return wrong("key", files.key, "is not the key of the certificate, or cannot be read");
  if (role == Role::kServer) {
    // Whom it takes, so that a client with several certificates finds the right one (RFC 9289, 5.2.1).
    STACK_OF(X509_NAME)* const authorities = SSL_load_client_CA_file(files.ca_file.c_str());
    if (authorities == nullptr)
      return wrong("ca_file", files.ca_file, "has no certificates that can be read");
    SSL_CTX_set_client_CA_list(context.get(), authorities);
  }
  X509* const certificate = SSL_CTX_get0_certificate(context.get());
  const int purpose = role == Role::kServer ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  if (X509_check_purpose(certificate, purpose, 0) != 1)
    return wrong("certificate", files.certificate,
                 role == Role::kServer
                     ? "is not one of a server: its extended key usage must have serverAuth"
                     : "is not one of a client: its extended key usage must have clientAuth");
  const int days = std::min(days_of(certificate), days_of_authorities(context.get()));
  auto loaded = std::shared_ptr<Credentials>(new Credentials(role, std::move(context), std::move(peers)));
  loaded->days_left_ = days;
  return std::shared_ptr<const Credentials>(std::move(loaded));
}

Result<std::shared_ptr<const Credentials>> Credentials::of_key(Role role, SharedKey key) {
  ERR_clear_error();
  Context context(SSL_CTX_new(role == Role::kServer ? TLS_server_method() : TLS_client_method()));
  if (!context) return fail(ENOMEM, "SSL_CTX_new");
  limit_to_rfc(context.get(), role);
  if (!use_shared_keys(context.get(), role)) return fail(ENOMEM, "SSL_CTX of a shared key");
  auto made = std::shared_ptr<Credentials>(new Credentials(role, std::move(context), {}));
  made->key_ = std::move(key);
  return std::shared_ptr<const Credentials>(std::move(made));
}

Credentials::~Credentials() {
  if (key_) OPENSSL_cleanse(key_->secret.data(), key_->secret.size());
}

bool Credentials::permits(const std::vector<std::string>& names) const {
  return peers_.empty() || std::ranges::find_first_of(peers_, names) != peers_.end();
}

}  // namespace pnfsrdma::rpc_tls

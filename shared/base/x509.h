// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <string>

#include "shared/base/owned.h"
#include "shared/base/result.h"

// The steps by which certificates are made (OpenSSL). Errors are EINVAL, with OpenSSL's reason. Any thread.
namespace pnfsrdma::x509 {

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;

// What OpenSSL has said last in this thread.
std::unexpected<Error> failure(const std::string& what);

// P-256.
Result<Key> make_key();
// Of this key's owner, "O=pnfsrdma, CN=name", with a random serial number, from an hour ago (clocks of others may be
// behind) for ten years. Issuer, extensions and signature follow.
Result<Certificate> begin(EVP_PKEY* key, const std::string& name);
// `value` in OpenSSL's notation: x509v3_config(5).
Result<> add_extension(const Certificate& certificate, const Certificate& issuer, int id,
                       const std::string& value);
// Signed by this key, in PEM.
Result<std::string> sign(const Certificate& certificate, EVP_PKEY* key);

// In PEM, not encrypted.
Result<std::string> text_of(EVP_PKEY* private_key);
Result<std::string> public_text_of(EVP_PKEY* key);
Result<Certificate> read_certificate(const std::string& text);
Result<Key> read_private_key(const std::string& text);
Result<Key> read_public_key(const std::string& text);

}  // namespace pnfsrdma::x509

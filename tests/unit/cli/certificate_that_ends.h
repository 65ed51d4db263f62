// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>

#include "shared/base/owned.h"

namespace pnfsrdma::cli {

// Signs itself.
inline std::string certificate_that_ends_in(int days) {
  const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
  const Owned<X509, X509_free> made(X509_new());
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600L * 24 * 100);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600L * 24 * days + 600);
  X509_set_pubkey(made.get(), key.get());
  X509_sign(made.get(), key.get(), EVP_sha256());
  const Owned<BIO, BIO_free_all> text(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(text.get(), made.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

}  // namespace pnfsrdma::cli

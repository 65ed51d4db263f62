// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/certificates.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "shared/base/owned.h"

namespace pnfsrdma::cli {
namespace {

using Certificate = Owned<X509, X509_free>;

Certificate read(const std::string& text) {
  const Owned<BIO, BIO_free_all> memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  return Certificate(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
}

// As OpenSSL checks a peer that is a client or a server.
bool trusts(const std::string& authority, const std::string& certificate, const char* purpose) {
  const Owned<X509_STORE, X509_STORE_free> store(X509_STORE_new());
  const Certificate root = read(authority);
  const Certificate leaf = read(certificate);
  X509_STORE_add_cert(store.get(), root.get());
  const Owned<X509_STORE_CTX, X509_STORE_CTX_free> context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr);
  X509_STORE_CTX_set_default(context.get(), purpose);
  return X509_verify_cert(context.get()) == 1;
}

class Certificates : public ::testing::Test {
 protected:
  std::string sign_for(const std::string& address) {
    return *sign(authority, *public_key_of(*make_private_key()), "host-1", address);
  }
  const CertificatePair authority = *make_authority();
};

TEST_F(Certificates, OfAMemberAreGoodForServersAndClients) {
  const std::string certificate = sign_for("192.0.2.1");
  EXPECT_TRUE(trusts(authority.certificate, certificate, "ssl_server"));
  EXPECT_TRUE(trusts(authority.certificate, certificate, "ssl_client"));
  EXPECT_FALSE(trusts(make_authority()->certificate, certificate, "ssl_server"));
}

// With it a host could ask etcd and have all metadata, or control the bricks of others.
TEST_F(Certificates, OfAHostWithBricksAloneAreGoodForServersOnly) {
  const std::string certificate =
      *sign(authority, *public_key_of(*make_private_key()), "brick-1", "192.0.2.7", CertificateUse::kBrick);
  EXPECT_TRUE(trusts(authority.certificate, certificate, "ssl_server"));
  EXPECT_FALSE(trusts(authority.certificate, certificate, "ssl_client"));
  EXPECT_EQ(X509_check_ip_asc(read(certificate).get(), "192.0.2.7", 0), 1);
}

TEST_F(Certificates, NameTheAddressTheyAreFor) {
  EXPECT_EQ(X509_check_ip_asc(read(sign_for("192.0.2.1")).get(), "192.0.2.1", 0), 1);
  EXPECT_NE(X509_check_ip_asc(read(sign_for("192.0.2.1")).get(), "192.0.2.2", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(read(sign_for("2001:db8::1")).get(), "2001:db8::1", 0), 1);
}

TEST_F(Certificates, LastTenYears) {
  EXPECT_NEAR(*days_left(sign_for("192.0.2.1")), 3650, 1);
  EXPECT_NEAR(*days_left(authority.certificate), 3650, 1);
}

TEST_F(Certificates, OfAnAuthorityHaveAFingerprintOfTheirOwn) {
  EXPECT_EQ(fingerprint_of(authority.certificate)->size(), 64);
  EXPECT_NE(*fingerprint_of(authority.certificate), *fingerprint_of(make_authority()->certificate));
}

TEST_F(Certificates, WhatIsNoneIsRefused) {
  EXPECT_FALSE(fingerprint_of("nonsense"));
  EXPECT_FALSE(days_left(""));
  EXPECT_FALSE(public_key_of("nonsense"));
  EXPECT_FALSE(sign(authority, "nonsense", "host-1", "192.0.2.1"));
  EXPECT_FALSE(sign({authority.certificate, *make_private_key()}, *public_key_of(*make_private_key()),
                    "host-1", "192.0.2.1"));
}

}  // namespace
}  // namespace pnfsrdma::cli

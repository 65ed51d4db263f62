// SPDX-License-Identifier: Apache-2.0
#include "shared/base/x509.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace pnfsrdma {
namespace {

struct Issued : ::testing::Test {
  const x509::Key key = std::move(*x509::make_key());

  std::string self_signed(const std::string& name) {
    const x509::Certificate made = std::move(*x509::begin(key.get(), name));
    X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
    EXPECT_TRUE(x509::add_extension(made, made, NID_basic_constraints, "critical,CA:FALSE"));
    return *x509::sign(made, key.get());
  }
};

TEST_F(Issued, ACertificateIsOfItsKeyAndName) {
  const x509::Certificate read = std::move(*x509::read_certificate(self_signed("host-1")));
  EXPECT_EQ(X509_verify(read.get(), key.get()), 1);
  EXPECT_EQ(X509_check_private_key(read.get(), key.get()), 1);
  char name[64] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(read.get()), NID_commonName, name, sizeof name);
  EXPECT_STREQ(name, "host-1");
  EXPECT_EQ(X509_verify(read.get(), x509::make_key()->get()), 0);
}

TEST_F(Issued, NoTwoHaveOneNumber) {
  const x509::Certificate first = std::move(*x509::read_certificate(self_signed("a")));
  const x509::Certificate second = std::move(*x509::read_certificate(self_signed("a")));
  EXPECT_NE(ASN1_INTEGER_cmp(X509_get0_serialNumber(first.get()), X509_get0_serialNumber(second.get())), 0);
}

TEST_F(Issued, KeysAreReadAsTheyWereWritten) {
  const x509::Key again = std::move(*x509::read_private_key(*x509::text_of(key.get())));
  EXPECT_EQ(EVP_PKEY_eq(again.get(), key.get()), 1);
  const x509::Key half = std::move(*x509::read_public_key(*x509::public_text_of(key.get())));
  EXPECT_EQ(EVP_PKEY_eq(half.get(), key.get()), 1);
}

TEST_F(Issued, WhatIsNoneIsRefused) {
  EXPECT_EQ(x509::read_certificate("nonsense").error().number(), EINVAL);
  EXPECT_EQ(x509::read_private_key("").error().number(), EINVAL);
  EXPECT_EQ(x509::read_public_key(*x509::text_of(key.get())).error().number(), EINVAL);
  const x509::Certificate made = std::move(*x509::begin(key.get(), "a"));
  EXPECT_EQ(x509::add_extension(made, made, NID_subject_alt_name, "nonsense").error().number(), EINVAL);
}

}  // namespace
}  // namespace pnfsrdma

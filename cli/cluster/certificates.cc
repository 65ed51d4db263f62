// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/certificates.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <span>

#include "shared/base/bytes.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;
using Extension = Owned<X509_EXTENSION, X509_EXTENSION_free>;
using Memory = Owned<BIO, BIO_free_all>;

constexpr long kTenYears = 3650L * 24 * 3600;
// Clocks of other hosts may be behind.
constexpr long kHourBefore = -3600;

std::unexpected<Failure> openssl_failed(const std::string& what) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  return refuse(ExitCode::kFailed, what, reason.data());
}

Memory reading(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(const Memory& memory) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

Outcome<Certificate> read_certificate(const std::string& text) {
  Certificate certificate(PEM_read_bio_X509(reading(text).get(), nullptr, nullptr, nullptr));
  if (!certificate) return openssl_failed("this is no certificate");
  return certificate;
}

Outcome<Key> read_private_key(const std::string& text) {
  Key key(PEM_read_bio_PrivateKey(reading(text).get(), nullptr, nullptr, nullptr));
  if (!key) return openssl_failed("this is no private key");
  return key;
}

Outcome<std::string> text_of_key(const Key& key) {
  const Memory text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed("writing a private key");
  return text_of(text);
}

Outcome<Key> new_key() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failed("making a private key");
  return key;
}

Outcome<> add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
    return openssl_failed("making a certificate");
  return {};
}

// What all certificates have, but for the issuer and what they are for.
Outcome<Certificate> begin_certificate(EVP_PKEY* key, const std::string& name) {
  Certificate made(X509_new());
  std::array<unsigned char, 16> serial{};
  if (!made || RAND_bytes(serial.data(), serial.size()) != 1) return openssl_failed("making a certificate");
  serial[0] &= 0x7F;  // a positive number
  const Owned<BIGNUM, BN_free> number(BN_bin2bn(serial.data(), serial.size(), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made.get()));
  X509_set_version(made.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), kHourBefore);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kTenYears);
  X509_set_pubkey(made.get(), key);
  X509_NAME* const subject = X509_get_subject_name(made.get());
  const auto add = [subject](const char* field, const std::string& value) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8,
                                      reinterpret_cast<const unsigned char*>(value.c_str()), -1, -1, 0) == 1;
  };
  if (!add("O", "pnfsrdma") || !add("CN", name)) return openssl_failed("making a certificate");
  return made;
}

Outcome<std::string> signed_by(const Certificate& certificate, const Key& key) {
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0)
    return openssl_failed("signing a certificate");
  const Memory text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(text.get(), certificate.get()) != 1) return openssl_failed("writing a certificate");
  return text_of(text);
}

}  // namespace

Outcome<CertificatePair> make_authority() {
  TRY_ASSIGN(const Key key, new_key());
  TRY_ASSIGN(const Certificate made, begin_certificate(key.get(), "pnfsrdma cluster"));
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  TRY(add_extension(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  TRY(add_extension(made.get(), made.get(), NID_key_usage, "critical,keyCertSign"));
  TRY(add_extension(made.get(), made.get(), NID_subject_key_identifier, "hash"));
  TRY_ASSIGN(std::string certificate, signed_by(made, key));
  TRY_ASSIGN(std::string secret, text_of_key(key));
  return CertificatePair{std::move(certificate), std::move(secret)};
}

Outcome<std::string> make_private_key() {
  TRY_ASSIGN(const Key key, new_key());
  return text_of_key(key);
}

Outcome<std::string> public_key_of(const std::string& private_key) {
  TRY_ASSIGN(const Key key, read_private_key(private_key));
  const Memory text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PUBKEY(text.get(), key.get()) != 1) return openssl_failed("writing a public key");
  return text_of(text);
}

Outcome<std::string> sign(const CertificatePair& authority, const std::string& public_key,
                          const std::string& name, const std::string& address) {
  TRY_ASSIGN(const Certificate issuer, read_certificate(authority.certificate));
  TRY_ASSIGN(const Key secret, read_private_key(authority.key));
  if (X509_check_private_key(issuer.get(), secret.get()) != 1)
    return openssl_failed("the authority's key is not that of its certificate");
  const Key key(PEM_read_bio_PUBKEY(reading(public_key).get(), nullptr, nullptr, nullptr));
  if (!key) return openssl_failed("this is no public key");
  TRY_ASSIGN(const Certificate made, begin_certificate(key.get(), name));
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get()));
  X509* const certificate = made.get();
  TRY(add_extension(certificate, issuer.get(), NID_basic_constraints, "critical,CA:FALSE"));
  TRY(add_extension(certificate, issuer.get(), NID_key_usage, "critical,digitalSignature"));
  // etcd's JSON gateway is a client of its own member, with the member's certificate.
  TRY(add_extension(certificate, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth"));
  TRY(add_extension(certificate, issuer.get(), NID_authority_key_identifier, "keyid"));
  TRY(add_extension(certificate, issuer.get(), NID_subject_alt_name, "IP:" + address));
  return signed_by(made, secret);
}

Outcome<std::string> fingerprint_of(const std::string& text) {
  TRY_ASSIGN(const Certificate certificate, read_certificate(text));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1)
    return openssl_failed("reading a certificate");
  return to_hex(std::as_bytes(std::span(digest.data(), size)));
}

Outcome<int> days_left(const std::string& text) {
  TRY_ASSIGN(const Certificate certificate, read_certificate(text));
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get())) != 1)
    return openssl_failed("reading a certificate");
  return seconds < 0 ? days - 1 : days;
}

}  // namespace pnfsrdma::cli

// SPDX-License-Identifier: Apache-2.0
#include "shared/base/x509.h"

#include <openssl/err.h>
#include <openssl/rand.h>

#include <array>
#include <cerrno>

namespace pnfsrdma::x509 {
namespace {

using Memory = Owned<BIO, BIO_free_all>;

constexpr long kTenYears = 3650L * 24 * 3600;
constexpr long kHourBefore = -3600;

Memory reading(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// What `write` puts into memory; it returns 1.
template <typename Write>
Result<std::string> written(const char* what, Write write) {
  const Memory memory(BIO_new(BIO_s_mem()));
  if (write(memory.get()) != 1) return failure(what);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

}  // namespace

std::unexpected<Error> failure(const std::string& what) {
  std::array<char, 256> reason{};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  return fail(EINVAL, what + ": " + reason.data());
}

Result<Key> make_key() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return failure("making a private key");
  return key;
}

Result<Certificate> begin(EVP_PKEY* key, const std::string& name) {
  Certificate made(X509_new());
  std::array<unsigned char, 16> serial{};
  if (!made || RAND_bytes(serial.data(), serial.size()) != 1) return failure("making a certificate");
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
  if (!add("O", "pnfsrdma") || !add("CN", name)) return failure("making a certificate");
  return made;
}

Result<> add_extension(const Certificate& certificate, const Certificate& issuer, int id,
                       const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer.get(), certificate.get(), nullptr, nullptr, 0);
  const Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  if (!extension || X509_add_ext(certificate.get(), extension.get(), -1) != 1)
    return failure("making a certificate");
  return {};
}

Result<std::string> sign(const Certificate& certificate, EVP_PKEY* key) {
  if (X509_sign(certificate.get(), key, EVP_sha256()) == 0) return failure("signing a certificate");
  return written("writing a certificate", [&](BIO* to) { return PEM_write_bio_X509(to, certificate.get()); });
}

Result<std::string> text_of(EVP_PKEY* private_key) {
  return written("writing a private key", [&](BIO* to) {
    return PEM_write_bio_PrivateKey(to, private_key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

Result<std::string> public_text_of(EVP_PKEY* key) {
  return written("writing a public key", [&](BIO* to) { return PEM_write_bio_PUBKEY(to, key); });
}

Result<Certificate> read_certificate(const std::string& text) {
  Certificate certificate(PEM_read_bio_X509(reading(text).get(), nullptr, nullptr, nullptr));
  if (!certificate) return failure("this is no certificate");
  return certificate;
}

Result<Key> read_private_key(const std::string& text) {
  Key key(PEM_read_bio_PrivateKey(reading(text).get(), nullptr, nullptr, nullptr));
  if (!key) return failure("this is no private key");
  return key;
}

Result<Key> read_public_key(const std::string& text) {
  Key key(PEM_read_bio_PUBKEY(reading(text).get(), nullptr, nullptr, nullptr));
  if (!key) return failure("this is no public key");
  return key;
}

}  // namespace pnfsrdma::x509

// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/certificates.h"

#include <array>
#include <span>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/base/x509.h"

namespace pnfsrdma::cli {
namespace {

// For the person at the command line.
template <typename T>
Outcome<T> told(Result<T> made) {
  if (!made) return refuse(ExitCode::kFailed, made.error().what());
  return *std::move(made);
}

Result<CertificatePair> authority() {
  TRY_ASSIGN(const x509::Key key, x509::make_key());
  TRY_ASSIGN(const x509::Certificate made, x509::begin(key.get(), "pnfsrdma cluster"));
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  TRY(x509::add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  TRY(x509::add_extension(made, made, NID_key_usage, "critical,keyCertSign"));
  TRY(x509::add_extension(made, made, NID_subject_key_identifier, "hash"));
  TRY_ASSIGN(std::string certificate, x509::sign(made, key.get()));
  TRY_ASSIGN(std::string secret, x509::text_of(key.get()));
  return CertificatePair{std::move(certificate), std::move(secret)};
}

Result<std::string> private_key() {
  TRY_ASSIGN(const x509::Key key, x509::make_key());
  return x509::text_of(key.get());
}

Result<std::string> public_part(const std::string& private_key) {
  TRY_ASSIGN(const x509::Key key, x509::read_private_key(private_key));
  return x509::public_text_of(key.get());
}

Result<std::string> member(const CertificatePair& authority, const std::string& public_key,
                           const std::string& name, const std::string& address, CertificateUse use) {
  TRY_ASSIGN(const x509::Certificate issuer, x509::read_certificate(authority.certificate));
  TRY_ASSIGN(const x509::Key secret, x509::read_private_key(authority.key));
  if (X509_check_private_key(issuer.get(), secret.get()) != 1)
    return x509::failure("the authority's key is not that of its certificate");
  TRY_ASSIGN(const x509::Key key, x509::read_public_key(public_key));
  TRY_ASSIGN(const x509::Certificate made, x509::begin(key.get(), name));
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get()));
  TRY(x509::add_extension(made, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  TRY(x509::add_extension(made, issuer, NID_key_usage, "critical,digitalSignature"));
  // etcd's JSON gateway is a client of its own member, with the member's certificate.
  TRY(x509::add_extension(made, issuer, NID_ext_key_usage,
                          use == CertificateUse::kMember ? "serverAuth,clientAuth" : "serverAuth"));
  TRY(x509::add_extension(made, issuer, NID_authority_key_identifier, "keyid"));
  TRY(x509::add_extension(made, issuer, NID_subject_alt_name, "IP:" + address));
  return x509::sign(made, secret.get());
}

Result<std::string> fingerprint(const std::string& text) {
  TRY_ASSIGN(const x509::Certificate certificate, x509::read_certificate(text));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (X509_digest(certificate.get(), EVP_sha256(), digest.data(), &size) != 1)
    return x509::failure("reading a certificate");
  return to_hex(std::as_bytes(std::span(digest.data(), size)));
}

Result<int> days(const std::string& text) {
  TRY_ASSIGN(const x509::Certificate certificate, x509::read_certificate(text));
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate.get())) != 1)
    return x509::failure("reading a certificate");
  return seconds < 0 ? days - 1 : days;
}

}  // namespace

Outcome<CertificatePair> make_authority() {
  return told(authority());
}

Outcome<std::string> make_private_key() {
  return told(private_key());
}

Outcome<std::string> public_key_of(const std::string& private_key) {
  return told(public_part(private_key));
}

Outcome<std::string> sign(const CertificatePair& authority, const std::string& public_key,
                          const std::string& name, const std::string& address, CertificateUse use) {
  return told(member(authority, public_key, name, address, use));
}

Outcome<std::string> fingerprint_of(const std::string& text) {
  return told(fingerprint(text));
}

Outcome<int> days_left(const std::string& text) {
  return told(days(text));
}

}  // namespace pnfsrdma::cli

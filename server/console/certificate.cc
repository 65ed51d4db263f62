// SPDX-License-Identifier: Apache-2.0
#include "server/console/certificate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace pnfsrdma::console {

namespace {

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;
using Extension = Owned<X509_EXTENSION, X509_EXTENSION_free>;
using Memory = Owned<BIO, BIO_free_all>;
constexpr long kTenYears = 3650L * 24 * 3600;

std::unexpected<Error> tls_failure(const std::string& what) {
  char reason[256] = {};
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  ERR_clear_error();
  return fail(EINVAL, what + ": " + reason);
}

Result<> add_extension(X509* certificate, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  if (!extension || X509_add_ext(certificate, extension.get(), -1) != 1)
    return tls_failure("making the console's certificate");
  return {};
}

// Only letters, digits, dots and hyphens: it becomes part of a configuration string.
std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  const std::string text(name);
  const bool plain =
      !text.empty() &&
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
          std::string::npos;
  return plain && text.size() <= 63 ? text : "localhost";
}

Result<Certificate> make_certificate(EVP_PKEY* key) {
  const std::string host = host_name();
  Certificate made(X509_new());
  std::array<unsigned char, 16> serial;
  RAND_bytes(serial.data(), serial.size());
  serial[0] &= 0x7F;  // a positive number
  const Owned<BIGNUM, BN_free> number(BN_bin2bn(serial.data(), serial.size(), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(made.get()));
  X509_set_version(made.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kTenYears);
  X509_set_pubkey(made.get(), key);
  X509_NAME* name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("pnfsrdma"), -1,
                             -1, 0);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(host.c_str()),
                             -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  TRY(add_extension(made.get(), NID_basic_constraints, "critical,CA:FALSE"));
  TRY(add_extension(made.get(), NID_ext_key_usage, "serverAuth"));
  TRY(add_extension(made.get(), NID_subject_alt_name, "DNS:" + host + ",DNS:localhost,IP:127.0.0.1,IP:::1"));
  if (X509_sign(made.get(), key, EVP_sha256()) == 0) return tls_failure("signing the console's certificate");
  return made;
}

Result<> write_file(const std::string& path, BIO* content, mode_t mode) {
  // Complete or not there: a crash must not leave half a key behind.
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(content, &bytes);
  const FileDescriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file || write(file.get(), bytes, static_cast<size_t>(size)) != size || fsync(file.get()) != 0 ||
      rename(temporary.c_str(), path.c_str()) != 0)
    return std::unexpected(Error::from_errno("write " + path));
  return {};
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace

Result<> make_certificate_if_missing(const CertificateFiles& files) {
  if (exists(files.certificate) && exists(files.key)) return {};
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return tls_failure("making the console's key");
  TRY_ASSIGN(const Certificate certificate, make_certificate(key.get()));
  const Memory key_text(BIO_new(BIO_s_mem()));
  const Memory certificate_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1)
    return tls_failure("writing the console's certificate");
  TRY(write_file(files.key, key_text.get(), 0600));
  return write_file(files.certificate, certificate_text.get(), 0644);
}

Result<TlsContext> load_tls_context(const CertificateFiles& files) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return tls_failure("setting up TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return tls_failure("the console's certificate " + files.certificate + " cannot be used");
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return tls_failure("the console's key " + files.key + " cannot be used");
  return context;
}

Result<std::string> fingerprint_of(const TlsContext& context) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1)
    return tls_failure("reading the console's certificate");
  std::string text;
  for (unsigned index = 0; index < size; ++index)
    text += fmt::format("{}{:02X}", index == 0 ? "" : ":", digest[index]);
  return text;
}

Result<double> seconds_left(const TlsContext& context) {
  constexpr double kDay = 24 * 3600;
  int days = 0;
  int seconds = 0;
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  if (certificate == nullptr ||
      ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) != 1)
    return tls_failure("reading the console's certificate");
  return days * kDay + seconds;
}

Result<int> days_left(const TlsContext& context) {
  constexpr double kDay = 24 * 3600;
  TRY_ASSIGN(const double seconds, seconds_left(context));
  return seconds < 0 && seconds > -kDay ? -1 : static_cast<int>(seconds / kDay);
}

}  // namespace pnfsrdma::console

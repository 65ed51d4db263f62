// SPDX-License-Identifier: Apache-2.0
#include "server/console/certificate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "shared/base/x509.h"

namespace pnfsrdma::console {

namespace {

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

Result<std::string> make_certificate(EVP_PKEY* key) {
  const std::string host = host_name();
  TRY_ASSIGN(const x509::Certificate made, x509::begin(key, host));
  X509_set_issuer_name(made.get(), X509_get_subject_name(made.get()));
  TRY(x509::add_extension(made, made, NID_basic_constraints, "critical,CA:FALSE"));
  TRY(x509::add_extension(made, made, NID_ext_key_usage, "serverAuth"));
  TRY(x509::add_extension(made, made, NID_subject_alt_name,
                          "DNS:" + host + ",DNS:localhost,IP:127.0.0.1,IP:::1"));
  return x509::sign(made, key);
}

Result<> write_file(const std::string& path, const std::string& content, mode_t mode) {
  // Complete or not there: a crash must not leave half a key behind.
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  const FileDescriptor file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!file || write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
      fsync(file.get()) != 0 || rename(temporary.c_str(), path.c_str()) != 0)
    return std::unexpected(Error::from_errno("write " + path));
  return {};
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace

Result<> make_certificate_if_missing(const CertificateFiles& files) {
  if (exists(files.certificate) && exists(files.key)) return {};
  TRY_ASSIGN(const x509::Key key, x509::make_key());
  TRY_ASSIGN(const std::string certificate, make_certificate(key.get()));
  TRY_ASSIGN(const std::string secret, x509::text_of(key.get()));
  TRY(write_file(files.key, secret, 0600));
  return write_file(files.certificate, certificate, 0644);
}

Result<TlsContext> load_tls_context(const CertificateFiles& files) {
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return x509::failure("setting up TLS");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1)
    return x509::failure("the console's certificate " + files.certificate + " cannot be used");
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return x509::failure("the console's key " + files.key + " cannot be used");
  return context;
}

Result<std::string> fingerprint_of(const TlsContext& context) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const X509* certificate = SSL_CTX_get0_certificate(context.get());
  if (certificate == nullptr || X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1)
    return x509::failure("reading the console's certificate");
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
    return x509::failure("reading the console's certificate");
  return days * kDay + seconds;
}

Result<int> days_left(const TlsContext& context) {
  constexpr double kDay = 24 * 3600;
  TRY_ASSIGN(const double seconds, seconds_left(context));
  return seconds < 0 && seconds > -kDay ? -1 : static_cast<int>(seconds / kDay);
}

}  // namespace pnfsrdma::console

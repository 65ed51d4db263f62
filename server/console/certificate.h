// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/console/connection_stream.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

struct CertificateFiles {
  std::string certificate;  // PEM, the chain behind it
  std::string key;          // PEM
};

// Writes a self-signed certificate for this host (P-256, ten years, names: host name, localhost, loopback
// addresses) and its key (0600), unless both files are there.
Result<> make_certificate_if_missing(const CertificateFiles& files);
// For servers: TLS 1.2 and up. EINVAL naming the file when it cannot be used.
Result<TlsContext> load_tls_context(const CertificateFiles& files);
// SHA-256 of the certificate, as browsers show it: for whoever wants to compare.
Result<std::string> fingerprint_of(const TlsContext& context);
// Of the certificate; negative when it has expired.
Result<int> days_left(const TlsContext& context);
Result<double> seconds_left(const TlsContext& context);

}  // namespace pnfsrdma::console

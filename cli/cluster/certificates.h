// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/output/failure.h"

// The certificates of a cluster: one authority, and what it signs for each member. Everything is PEM text, keys are
// P-256. Errors are kFailed with OpenSSL's reason. Any thread.
namespace pnfsrdma::cli {

struct CertificatePair {
  std::string certificate;
  std::string key;
};

// Signs for ten years.
Outcome<CertificatePair> make_authority();

Outcome<std::string> make_private_key();
Outcome<std::string> public_key_of(const std::string& private_key);

// Members are servers and clients of one another, and control bricks. A host with bricks alone is only a server: nobody
// gives it metadata, etcd does not answer it, and it controls no brick of others.
enum class CertificateUse { kMember, kBrick };

// A certificate for the owner of a public key, for ten years: of `name`, and as a server at `address` (an IP address).
Outcome<std::string> sign(const CertificatePair& authority, const std::string& public_key,
                          const std::string& name, const std::string& address,
                          CertificateUse use = CertificateUse::kMember);

// SHA-256, hexadecimal.
Outcome<std::string> fingerprint_of(const std::string& certificate);

// Until the (first) certificate ends, in whole days; negative: it has ended.
Outcome<int> days_left(const std::string& certificate);

}  // namespace pnfsrdma::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <vector>

#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::rpc_tls {

enum class Role { kServer, kClient };

// PEM files.
struct Files {
  std::string certificate;  // the chain behind it
  std::string key;
  std::string ca_file;  // whom to trust, and nobody else

  bool operator==(const Files&) const = default;
};

// What the files said when they were read, ready for sessions: TLS 1.3 only, certificates of both sides, no tickets, no
// data before the handshake's end, and ALPN "sunrpc" (RFC 9289, 5). Immutable.
class Credentials {
 public:
  // `peers`: whom of those that the authorities in ca_file have signed for; empty: all of them. EINVAL naming the file
  // and what is wrong with it: it cannot be read, the key is of another certificate, the certificate does not serve for
  // this role.
  static Result<std::shared_ptr<const Credentials>> load(Role role, const Files& files,
                                                         std::vector<std::string> peers);

  Role role() const { return role_; }
  SSL_CTX* context() const { return context_.get(); }
  // Whether one of these names is to be let in.
  bool permits(const std::vector<std::string>& names) const;
  // Of what ends first: the certificate, or one of the authorities in ca_file. Negative when it has ended.
  int days_left() const { return days_left_; }

 private:
  using Context = Owned<SSL_CTX, SSL_CTX_free>;
  Credentials(Role role, Context context, std::vector<std::string> peers)
      : role_(role), context_(std::move(context)), peers_(std::move(peers)) {}

  const Role role_;
  const Context context_;
  const std::vector<std::string> peers_;
  int days_left_ = 0;
};

}  // namespace pnfsrdma::rpc_tls

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
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

// What both sides have in place of certificates: a pre-shared key (RFC 8446, 2.2), which says for each that the other
// one has it, too.
struct SharedKey {
  std::string identity;  // told in the clear; not empty
  std::array<std::byte, 32> secret{};
};

// What the files said when they were read, ready for sessions: TLS 1.3 only, certificates of both sides, no tickets, no
// data before the handshake's end, and ALPN "sunrpc" (RFC 9289, 5). Or a key in place of certificates. Immutable.
class Credentials {
 public:
  // `peers`: whom of those that the authorities in ca_file have signed for; empty: all of them. EINVAL naming the file
  // and what is wrong with it: it cannot be read, the key is of another certificate, the certificate does not serve for
  // this role.
  static Result<std::shared_ptr<const Credentials>> load(Role role, const Files& files,
                                                         std::vector<std::string> peers);

  // Sessions by this key and in no other way, with a fresh Diffie-Hellman exchange each.
  static Result<std::shared_ptr<const Credentials>> of_key(Role role, SharedKey key);
  ~Credentials();

  Role role() const { return role_; }
  const std::optional<SharedKey>& key() const { return key_; }
  SSL_CTX* context() const { return context_.get(); }
  // Whether one of these names is to be let in.
  bool permits(const std::vector<std::string>& names) const;
  // Of what ends first: the certificate, or one of the authorities in ca_file. Negative when it has ended. A key ends
  // never.
  int days_left() const { return days_left_; }

 private:
  using Context = Owned<SSL_CTX, SSL_CTX_free>;
  Credentials(Role role, Context context, std::vector<std::string> peers)
      : role_(role), context_(std::move(context)), peers_(std::move(peers)) {}

  const Role role_;
  const Context context_;
  const std::vector<std::string> peers_;
  std::optional<SharedKey> key_;
  int days_left_ = std::numeric_limits<int>::max();
};

}  // namespace pnfsrdma::rpc_tls

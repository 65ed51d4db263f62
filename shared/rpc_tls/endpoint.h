// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shared/base/result.h"
#include "shared/rpc/tls.h"
#include "shared/rpc_tls/credentials.h"

namespace pnfsrdma::rpc_tls {

// The credentials of a daemon as they change: what is begun has those of now, and whoever is connected can be looked at
// again. Sessions share it. Loop thread only.
class Endpoint final : public rpc::TlsEndpoint, public std::enable_shared_from_this<Endpoint> {
 public:
  // EINVAL: Credentials::load().
  static Result<std::shared_ptr<Endpoint>> open(Role role, const Files& files,
                                                std::vector<std::string> peers = {});

  // By a key that both sides have, in place of certificates.
  static Result<std::shared_ptr<Endpoint>> open_key(Role role, SharedKey key);

  // Reads the files again, or others. An error changes nothing.
  Result<> reload(const Files& files, std::vector<std::string> peers = {});

  Result<std::unique_ptr<rpc::TlsSession>> begin(const std::string& peer) override;
  const std::shared_ptr<const Credentials>& credentials() const { return credentials_; }

 private:
  explicit Endpoint(std::shared_ptr<const Credentials> credentials) : credentials_(std::move(credentials)) {}

  std::shared_ptr<const Credentials> credentials_;
};

}  // namespace pnfsrdma::rpc_tls

// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_tls/endpoint.h"

#include <utility>

#include "shared/rpc_tls/session.h"

namespace pnfsrdma::rpc_tls {

Result<std::shared_ptr<Endpoint>> Endpoint::open(Role role, const Files& files,
                                                 std::vector<std::string> peers) {
  TRY_ASSIGN(auto loaded, Credentials::load(role, files, std::move(peers)));
  return std::shared_ptr<Endpoint>(new Endpoint(std::move(loaded)));
}

Result<std::shared_ptr<Endpoint>> Endpoint::open_key(Role role, SharedKey key) {
  TRY_ASSIGN(auto made, Credentials::of_key(role, std::move(key)));
  return std::shared_ptr<Endpoint>(new Endpoint(std::move(made)));
}

Result<> Endpoint::reload(const Files& files, std::vector<std::string> peers) {
  TRY_ASSIGN(credentials_, Credentials::load(credentials_->role(), files, std::move(peers)));
  return {};
}

Result<std::unique_ptr<rpc::TlsSession>> Endpoint::begin(const std::string& peer) {
  return Session::begin(shared_from_this(), peer);
}

}  // namespace pnfsrdma::rpc_tls

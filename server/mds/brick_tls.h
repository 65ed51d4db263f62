// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>

#include "server/mds/admin/config.h"
#include "shared/base/result.h"
#include "shared/brick/client.h"
#include "shared/rpc_tls/endpoint.h"

namespace pnfsrdma::mds {

// Which bricks this server reaches by TLS, and with what certificate ("brick_tls"): with one, every brick with a TCP
// address that is not named as an exception. A brick that was reached so once is never reached without it, unless it is
// named. Control loop only.
class BrickTls {
 public:
  // EINVAL: a file cannot be used; says which, and why.
  static Result<std::unique_ptr<BrickTls>> open(const Config& config);
  BrickTls(const BrickTls&) = delete;
  BrickTls& operator=(const BrickTls&) = delete;

  // The same anew, for connections that are made from now on; those that would not be made any more are ended. An error
  // changes nothing.
  Result<> reload(const Config& config);

  // BrickClientOptions::tls for a brick with this address (of BrickRecord). `before`: it was reached by TLS once.
  // EACCES: it must not be reached now.
  Result<std::shared_ptr<rpc::TlsEndpoint>> endpoint_for(const std::string& address, bool before) const;

  // reload() looks at its connection, too, until it is taken out.
  void add(brick::BrickClient& client) { clients_.insert(&client); }
  void remove(brick::BrickClient& client) { clients_.erase(&client); }

 private:
  BrickTls() = default;
  Result<> take(const BrickTlsConfig& config);

  std::shared_ptr<rpc_tls::Endpoint> endpoint_;  // null: no certificate
  std::set<std::string> plain_;                  // addresses of the exceptions
  std::set<brick::BrickClient*> clients_;
};

}  // namespace pnfsrdma::mds

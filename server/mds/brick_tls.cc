// SPDX-License-Identifier: Apache-2.0
#include "server/mds/brick_tls.h"

#include <cerrno>

#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr int kDaysLeast = 30;

}  // namespace

Result<std::unique_ptr<BrickTls>> BrickTls::open(const Config& config) {
  std::unique_ptr<BrickTls> opened(new BrickTls());
  TRY(opened->take(config.brick_tls));
  return opened;
}

Result<> BrickTls::reload(const Config& config) {
  TRY(take(config.brick_tls));
  for (brick::BrickClient* const client : clients_) client->reassess_tls();
  return {};
}

Result<> BrickTls::take(const BrickTlsConfig& config) {
  std::shared_ptr<rpc_tls::Endpoint> endpoint;
  if (!config.certificate.empty()) {
    const rpc_tls::Files files{
        .certificate = config.certificate, .key = config.key, .ca_file = config.ca_file};
    // Sessions ask the endpoint that made them whether they may go on: it stays the same one.
    endpoint = endpoint_;
    Result<> read;
    if (endpoint) {
      read = endpoint->reload(files);
    } else if (auto opened = rpc_tls::Endpoint::open(rpc_tls::Role::kClient, files); opened) {
      endpoint = std::move(*opened);
    } else {
      read = std::unexpected(opened.error());
    }
    if (!read) return std::unexpected(read.error().in("config: brick_tls"));
    const int days = endpoint->credentials()->days_left();
    if (days < kDaysLeast)
      log_warning("mds", "certificate-ends certificate={} days={}", config.certificate, days);
  }
  endpoint_ = std::move(endpoint);
  plain_ = {config.plain.begin(), config.plain.end()};
  return {};
}

Result<std::shared_ptr<rpc::TlsEndpoint>> BrickTls::endpoint_for(const std::string& address,
                                                                 bool before) const {
  if (!address.starts_with("tcp:") || plain_.contains(address)) return nullptr;
  if (!endpoint_ && before) {
    return fail(EACCES, "it was reached by TLS before, and brick_tls is not set: set it, or name " + address +
                            " in brick_tls.plain");
  }
  return endpoint_;
}

}  // namespace pnfsrdma::mds

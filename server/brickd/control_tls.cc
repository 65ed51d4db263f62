// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/control_tls.h"

#include "shared/base/log.h"

namespace pnfsrdma::brick {
namespace {

constexpr const char* kWhere = "config: control.tls";
constexpr int kDaysLeast = 30;

rpc_tls::Files files_of(const Config::ControlConfig::TlsConfig& tls) {
  return {.certificate = tls.certificate, .key = tls.key, .ca_file = tls.ca_file};
}

void warn_of_end(const rpc_tls::Endpoint& endpoint, const std::string& path) {
  const int days = endpoint.credentials()->days_left();
  if (days < kDaysLeast) log_warning("brick", "certificate-ends certificate={} days={}", path, days);
}

}  // namespace

Result<ControlTls> ControlTls::open(const Config& config) {
  const auto& tls = config.control.tls;
  ControlTls opened;
  if (!tls.wanted()) return opened;
  auto endpoint = rpc_tls::Endpoint::open(rpc_tls::Role::kServer, files_of(tls), tls.peers);
  if (!endpoint) return std::unexpected(endpoint.error().in(kWhere));
  opened.endpoint_ = std::move(*endpoint);
  warn_of_end(*opened.endpoint_, tls.certificate);
  return opened;
}

Result<> ControlTls::reload(const Config& config) {
  const auto& tls = config.control.tls;
  if (!endpoint_ || !tls.wanted()) return {};
  if (const auto read = endpoint_->reload(files_of(tls), tls.peers); !read)
    return std::unexpected(read.error().in(kWhere));
  warn_of_end(*endpoint_, tls.certificate);
  return {};
}

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "shared/base/result.h"

namespace pnfsrdma::console {

// Where alerts are sent.
struct WebhookUrl {
  bool tls = false;
  std::string host;  // a name or a numeric address, without brackets
  int port = 0;
  std::string target = "/";  // path and query

  // What may be shown and logged: what stands behind the host is often a secret.
  std::string origin() const;
};

// "https://host[:port][/path][?query]", or http. EINVAL: it is none, or has a user, a password or a fragment.
Result<WebhookUrl> parse_webhook_url(const std::string& text);

}  // namespace pnfsrdma::console

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/console/alert_table.h"
#include "server/console/json.h"

namespace pnfsrdma::console {

// Alerts as a receiver of Prometheus Alertmanager's webhook reads them (version 4).
Json webhook_message(const std::vector<Alert>& alerts, const std::string& server);
// An alert that is none, for a test: it is called PnfsrdmaTest and is over already.
Alert test_alert(WallTime now);

// Of the header X-Pnfsrdma-Signature: "sha256=" and HMAC-SHA256 of the body in hexadecimal digits.
std::string signature_of(std::string_view body, std::string_view secret);

}  // namespace pnfsrdma::console

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "server/console/json.h"

namespace pnfsrdma::console {

// An entry of the audit log as a sentence for people, without its subject: "revoked the layout of /data from host1",
// "failed to log in as eve". Never throws: entries of other versions lack members.
std::string audit_summary(const Json& entry);

// A text of somebody else's for a line of the log: without what would end a quoted value or the line.
std::string plain_text(std::string_view text);

}  // namespace pnfsrdma::console

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shared/base/log.h"

namespace pnfsrdma {

// If stderr is the journal's (systemd.exec(5), JOURNAL_STREAM), the log goes there with the fields that
// README.md lists; otherwise it stays on stderr. `identifier` lives as long as the process. Before other
// threads are started.
void log_to_journal(const char* identifier);

// The fields of one line, as "NAME=value".
std::vector<std::string> journal_fields(const char* identifier, LogLevel level, std::string_view component,
                                        std::string_view text);

}  // namespace pnfsrdma

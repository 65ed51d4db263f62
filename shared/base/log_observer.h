// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "shared/base/log.h"

namespace pnfsrdma {

// Is told every line that is logged, too, by the thread that logs it: it must not log and must not wait. One
// at a time; null: nobody. Returns when the one before is not running any more.
using LogObserver = std::function<void(LogLevel level, std::string_view component, std::string_view text)>;
void observe_log(LogObserver observer);

// From now on lines go to `writer` instead of stderr; one at a time. Before other threads are started.
void write_log_with(LogObserver writer);

}  // namespace pnfsrdma

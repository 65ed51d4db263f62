// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/mds/log/log_keys.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// How far a log has come: so many of the records appended since it was opened, the last of them in the value there.
struct Logged {
  uint64_t records = 0;
  LogPoint end;
};

// The end of the metadata's log, for the one that leads. Whatever it says is logged survives any one host. Control loop
// only.
class Log {
 public:
  // Both are called in the loop, never from inside append(). Behind `lost` nothing more is logged, ever: what is not
  // said to be logged may be so or not. ESTALE: the lead is lost.
  struct Hooks {
    std::function<void(const Logged&)> logged;
    std::function<void(const Error&)> lost;
  };
  virtual ~Log() = default;

  // Once, before the first append().
  virtual void start(Hooks hooks) = 0;
  virtual void append(std::string record) = 0;
  // Waits until all that was appended is logged. Blocks: for start and shutdown only.
  virtual Result<Logged> wait() = 0;
};

}  // namespace pnfsrdma::mds

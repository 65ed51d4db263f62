// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/mds/meta/snapshots.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Takes snapshots of the whole tree and deletes them (layout/README.md). Control loop only.
class SnapshotKeeper {
 public:
  // `done` comes once, later or from inside the call.
  using Taken = std::function<void(Result<SnapshotNumber>)>;
  using Done = std::function<void(Result<>)>;

  // What is acknowledged as durable before the call is in it; nothing is that begins after `done`. Everybody who writes
  // is asked to give back his layouts; who has not within `patience` makes it fail (ETIMEDOUT, nothing has changed).
  // EINVAL, EEXIST, EMFILE as of Snapshots::begin; EBUSY: another one is being taken; ENOSPC; ENOTCONN: a brick is away.
  void take(std::string_view name, Taken done);
  // Nobody sees it any more when `done` gets its answer; its memory is freed behind that. ENOENT.
  void remove(std::string_view name, Done done);
  // Bytes of memory that only snapshots have.
  uint64_t held() const;
};

}  // namespace pnfsrdma::mds

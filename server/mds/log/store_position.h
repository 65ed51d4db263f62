// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/mds/log/log_keys.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// How much of which log a store has: a row of its own, changed in the batch that brings the log's rows. It is this
// host's alone and never in the log.
struct StorePosition {
  std::string identity;  // of the log, 32 hexadecimal digits
  LogPoint applied;
  bool joined = true;  // false: it would begin that log, but another server may have been first

  bool operator==(const StorePosition&) const = default;
};

// nullopt: the store belongs to no log.
Result<std::optional<StorePosition>> read_position(KeyValueStore& store);
void put_position(Batch& batch, const StorePosition& position);
// It belongs to none from now on. Durable when it returns; blocks.
Result<> erase_position(KeyValueStore& store);

}  // namespace pnfsrdma::mds

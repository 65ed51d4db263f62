// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "server/mds/log/key_server.h"
#include "server/mds/log/log_keys.h"
#include "server/mds/log/log_record.h"
#include "server/mds/log/store_position.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/event_loop.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Brings the log's values into the store of a server that serves nobody: it blocks, and turns the loop while the
// store needs that. Each value, but for the parts of a record, is one batch, with the store's position in it:
// a crash anywhere begins again behind what the store has.
class Follower {
 public:
  // `stopping`: ends waiting for the store.
  Follower(EventLoop& loop, KeyValueStore& store, LogKeys keys, StorePosition position,
           std::function<bool()> stopping);

  // Values as the key server has them from next() on. ENODATA: one is missing, the log was trimmed: the store has to
  // begin with a copy. EUCLEAN as of decode_record(). ENOTSUP: a newer program leads, and has begun with what this one
  // does not know. ECANCELED: stopping. What else the store gives; it was not changed by that value.
  Result<> take(const std::vector<KeyRow>& rows);
  // The first value that was not taken.
  LogPosition next() const { return taken_ + 1; }
  const StorePosition& position() const { return position_; }
  // That next() is not there and never will be.
  Error missing() const;
  // Parts of a record are of no use without the last one.
  void drop_parts() { reader_ = {}; }

 private:
  Result<> apply(std::vector<LogRecord> records, LogPosition position);
  Result<> commit(Batch batch, const StorePosition& position);
  Result<> make_checkpoint(SnapshotNumber number);
  Result<> drop_checkpoint(SnapshotNumber number);

  EventLoop& loop_;
  KeyValueStore& store_;
  const LogKeys keys_;
  const std::function<bool()> stopping_;
  StorePosition position_;
  LogPosition taken_;
  ValueReader reader_;
};

}  // namespace pnfsrdma::mds

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
// a crash anywhere begins again behind what the store has. A value is taken only if it names the one before it.
class Follower {
 public:
  // `stopping`: ends waiting for the store. Asked whenever that takes nothing, or has no room for a copy.
  Follower(EventLoop& loop, KeyValueStore& store, LogKeys keys, StorePosition position,
           std::function<bool()> stopping);

  // Values as the key server has them from next() on. ENODATA: one is missing, the log was trimmed: the store has to
  // begin with a copy; or it is one of another history. EUCLEAN as of decode_record(). ENOTSUP: a newer program leads,
  // and has begun with what this one does not know. ECANCELED: stopping; the value may be taken later. What else the
  // store gives; it was not changed by that value.
  Result<> take(const std::vector<KeyRow>& rows);
  // The last value that was taken, and the next one.
  const LogPoint& last() const { return last_; }
  LogPosition next() const { return last_.position + 1; }
  const StorePosition& position() const { return position_; }
  // That next() is not there and never will be.
  Error missing() const;
  // The store has no room for what comes next, or for more than removals.
  bool lacks_room() const { return no_room_for_copy_ || store_.room().stopped; }
  // Parts of a record are of no use without the last one.
  void drop_parts() { reader_ = {}; }

 private:
  Result<> apply(std::vector<LogRecord> records, const LogPoint& end);
  Result<> commit(Batch batch, const StorePosition& position);
  Result<> make_checkpoint(SnapshotNumber number);
  Result<> try_checkpoint(SnapshotNumber number);
  Result<> drop_checkpoint(SnapshotNumber number);

  EventLoop& loop_;
  KeyValueStore& store_;
  const LogKeys keys_;
  const std::function<bool()> stopping_;
  StorePosition position_;
  LogPoint last_;
  ValueReader reader_;
  bool no_room_for_copy_ = false;
};

// The log does not have this value as a store has it.
Error went_back(const std::string& key);

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

// Those that wait for a commit to be durable. Control loop only.
class SyncWaiters {
 public:
  void add(Sequence sequence, std::function<void()> callback) {
    waiting_.emplace(sequence, std::move(callback));
  }
  // Runs those that wait for `synced` or less, in order, until `enough` says so. A callback may add others. Returns
  // up to where all have run: `synced`, if it was not enough.
  Sequence run(Sequence synced, const std::function<bool()>& enough = [] { return false; });
  bool empty() const { return waiting_.empty(); }
  void clear() { waiting_.clear(); }

 private:
  std::multimap<Sequence, std::function<void()>> waiting_;  // equal sequences: in the order they came
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

// A store that is never written: what else a store does, for views that only read.
class ReadOnlyStore : public KeyValueStore {
 public:
  Sequence last_namespace_sequence() const override { return 0; }
  Sequence last_sequence() const override { return 0; }
  Sequence synced_sequence() const override { return 0; }
  void when_synced(Sequence, std::function<void()>) override {}
  std::unique_ptr<KeyValueStore> still() override { return nullptr; }
  Result<> sync() override { return {}; }
  Result<> close() override { return {}; }
  void prepare_checkpoint(std::function<void()>) override {}
  void drop_checkpoint(SnapshotNumber, std::function<void(Result<>)>) override {}
  Result<> keep_checkpoints(const std::set<SnapshotNumber>&) override { return {}; }

 protected:
  Result<Sequence> write(const Batch&, CommitKind) override {
    return fail(EROFS, "this view does not change");
  }
  void fetch(std::vector<Wanted>, Arrived) override {}
  void make_checkpoint(SnapshotNumber, std::function<void(Result<>)>) override {}
};

}  // namespace pnfsrdma::mds

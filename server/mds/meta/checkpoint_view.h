// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

// One checkpoint as a store of its own, for who reads all of it: keys are as they were, and it is never written.
// Reads wait for the medium. `whole` outlives it.
class CheckpointView final : public KeyValueStore {
 public:
  CheckpointView(KeyValueStore& whole, SnapshotNumber number) : whole_(whole), number_(number) {}

  Sequence last_namespace_sequence() const override { return 0; }
  Sequence last_sequence() const override { return 0; }
  Sequence synced_sequence() const override { return 0; }
  void when_synced(Sequence, std::function<void()>) override {}
  Result<> sync() override { return {}; }
  Result<> close() override { return {}; }
  void prepare_checkpoint(std::function<void()>) override {}
  void drop_checkpoint(SnapshotNumber, std::function<void(Result<>)>) override {}
  Result<> keep_checkpoints(const std::set<SnapshotNumber>&) override { return {}; }

 protected:
  Result<std::optional<std::string>> read(SnapshotNumber, std::string_view key, Reach) override {
    return whole_.read(number_, key, Reach::kMedium);
  }
  Result<> walk(SnapshotNumber, std::string_view prefix, std::string_view from, const Visitor& visitor, Reach,
                std::string& reached) override {
    return whole_.walk(number_, prefix, from, visitor, Reach::kMedium, reached);
  }
  Result<Sequence> write(const Batch&, CommitKind) override { return fail(EROFS, "snapshots do not change"); }
  void fetch(std::vector<Wanted>, Arrived) override {}
  void make_checkpoint(SnapshotNumber, std::function<void(Result<>)>) override {}

 private:
  KeyValueStore& whole_;
  const SnapshotNumber number_;
};

}  // namespace pnfsrdma::mds

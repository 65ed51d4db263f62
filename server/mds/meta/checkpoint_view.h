// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/meta/read_only_store.h"

namespace pnfsrdma::mds {

// One checkpoint as a store of its own, for who reads all of it: keys are as they were, and it is never written.
// Reads wait for the medium. `whole` outlives it.
class CheckpointView final : public ReadOnlyStore {
 public:
  CheckpointView(KeyValueStore& whole, SnapshotNumber number) : whole_(whole), number_(number) {}

 protected:
  Result<std::optional<std::string>> read(SnapshotNumber, std::string_view key, Reach) override {
    return whole_.read(number_, key, Reach::kMedium);
  }
  Result<> walk(SnapshotNumber, std::string_view prefix, std::string_view from, const Visitor& visitor, Reach,
                std::string& reached) override {
    return whole_.walk(number_, prefix, from, visitor, Reach::kMedium, reached);
  }

 private:
  KeyValueStore& whole_;
  const SnapshotNumber number_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "server/mds/meta/key_value.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"
#include "tests/crash/images/faults.h"
#include "tests/crash/images/power.h"
#include "tests/doubles/metadata/crash_file_system.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::crash {

// The medium of the metadata: what stores are opened on, one after the other.
class Metadata {
 public:
  virtual ~Metadata() = default;
  virtual std::unique_ptr<mds::KeyValueStore> open(EventLoop& loop, Power& power, const Faults& faults) = 0;
  // At the moment of the cut, the power's mutex held: the medium as it will be found. What was not synced is
  // lost, or a random beginning of it is not.
  virtual std::shared_ptr<Metadata> remains(Random& random) = 0;
};

// In memory: quick, any number of remains of one run, the cut also between a commit and its sync.
class MemoryMetadata final : public Metadata {
 public:
  using Content = std::map<std::string, std::string>;
  // By the number of a snapshot.
  using Checkpoints = std::map<mds::SnapshotNumber, Content>;
  explicit MemoryMetadata(Content content = {}, Checkpoints checkpoints = {})
      : content_(std::move(content)), checkpoints_(std::move(checkpoints)) {}
  std::unique_ptr<mds::KeyValueStore> open(EventLoop& loop, Power& power, const Faults& faults) override;
  std::shared_ptr<Metadata> remains(Random& random) override;

  // Since open(), in order; the first `synced` of them are durable.
  struct History {
    std::vector<mds::Batch> batches;
    size_t synced = 0;
    Checkpoints checkpoints;  // durable as they are made
  };

 private:
  const Content content_;
  const Checkpoints checkpoints_;
  std::shared_ptr<History> history_ = std::make_shared<History>();
};

// RocksDB in a directory of its own, which goes with this. The cut ends all writing, so there is one for each
// store.
class RocksdbMetadata final : public Metadata, public std::enable_shared_from_this<RocksdbMetadata> {
 public:
  explicit RocksdbMetadata(uint64_t seed);
  ~RocksdbMetadata() override;
  std::unique_ptr<mds::KeyValueStore> open(EventLoop& loop, Power& power, const Faults& faults) override;
  std::shared_ptr<Metadata> remains(Random& random) override;

 private:
  mds::CrashFileSystem files_;
  std::filesystem::path directory_;
  SeededRandom random_;
  bool cut_ = false;
};

}  // namespace pnfsrdma::crash

// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/images/metadata.h"

#include <cstdlib>

#include "server/mds/meta/checkpoint_view.h"
#include "server/mds/meta/rocksdb_store.h"
#include "shared/base/check.h"
#include "tests/doubles/metadata/memory_store.h"

namespace pnfsrdma::crash {
namespace {

// Announces each commit, before and behind it, and each sync, and keeps what was committed.
class RecordingStore final : public mds::KeyValueStore {
 public:
  RecordingStore(EventLoop& loop, Power& power, const MemoryMetadata::Content& content,
                 std::shared_ptr<MemoryMetadata::History> history, bool pretend_sync)
      : loop_(loop),
        power_(power),
        history_(std::move(history)),
        pretend_sync_(pretend_sync),
        inner_(loop, mds::MemoryStore::Syncing::kManual) {
    mds::Batch all;
    for (const auto& [key, value] : content) all.put(key, value);
    CHECK(inner_.commit(all, mds::CommitKind::kState));
    CHECK(inner_.sync());
    mds::MemoryStore::Checkpoints checkpoints;
    for (const auto& [number, rows] : history_->checkpoints) checkpoints[number] = {rows.begin(), rows.end()};
    inner_.set_checkpoints(std::move(checkpoints));
  }

  Result<std::optional<std::string>> read(mds::SnapshotNumber at, std::string_view key, mds::Reach) override {
    return at == 0 ? inner_.get(key) : mds::CheckpointView(inner_, at).get(key);
  }
  Result<> walk(mds::SnapshotNumber at, std::string_view prefix, std::string_view from,
                const Visitor& visitor, mds::Reach, std::string&) override {
    if (at == 0) return inner_.scan(prefix, from, visitor);
    return mds::CheckpointView(inner_, at).scan(prefix, from, visitor);
  }
  Result<mds::Sequence> write(const mds::Batch& batch, mds::CommitKind kind) override {
    power_.event();
    const Power::Lock lock(power_.mutex());
    history_->batches.push_back(batch);
    auto committed = inner_.commit(batch, kind);
    power_.event();
    return committed;
  }
  mds::Sequence last_namespace_sequence() const override { return inner_.last_namespace_sequence(); }
  mds::Sequence last_sequence() const override { return inner_.last_sequence(); }
  mds::Sequence synced_sequence() const override { return inner_.synced_sequence(); }
  void when_synced(mds::Sequence sequence, std::function<void()> callback) override {
    inner_.when_synced(sequence, std::move(callback));
    if (sync_planned_ || sequence <= inner_.synced_sequence()) return;
    sync_planned_ = true;
    // Some turns later, as if a thread did it.
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      sync_planned_ = false;
      CHECK(sync());
    });
  }
  Result<> sync() override {
    power_.event();
    {
      const Power::Lock lock(power_.mutex());
      if (!pretend_sync_) history_->synced = history_->batches.size();
    }
    auto synced = inner_.sync();
    power_.event();
    return synced;
  }
  Result<> close() override { return sync(); }
  std::unique_ptr<mds::KeyValueStore> still() override { return inner_.still(); }
  void fetch(std::vector<mds::Wanted>, Arrived) override { CHECK(false); }
  void prepare_checkpoint(std::function<void()> done) override { inner_.prepare_checkpoint(std::move(done)); }
  void make_checkpoint(mds::SnapshotNumber number, std::function<void(Result<>)> done) override {
    power_.event();
    inner_.checkpoint(number, [this, done = std::move(done)](const Result<>& outcome) {
      keep_history();
      power_.event();
      done(outcome);
    });
  }
  void drop_checkpoint(mds::SnapshotNumber number, std::function<void(Result<>)> done) override {
    power_.event();
    inner_.drop_checkpoint(number, std::move(done));
    keep_history();
    power_.event();
  }
  Result<> keep_checkpoints(const std::set<mds::SnapshotNumber>& kept) override {
    auto outcome = inner_.keep_checkpoints(kept);
    keep_history();
    return outcome;
  }

 private:
  void keep_history() {
    const Power::Lock lock(power_.mutex());
    history_->checkpoints.clear();
    for (const auto& [number, rows] : inner_.checkpoints())
      history_->checkpoints[number] = {rows.begin(), rows.end()};
  }

  EventLoop& loop_;
  Power& power_;
  const std::shared_ptr<MemoryMetadata::History> history_;
  const bool pretend_sync_;
  mds::MemoryStore inner_;
  bool sync_planned_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<mds::KeyValueStore> MemoryMetadata::open(EventLoop& loop, Power& power,
                                                         const Faults& faults) {
  history_->checkpoints = checkpoints_;
  return std::make_unique<RecordingStore>(loop, power, content_, history_, faults.pretend_sync);
}

std::shared_ptr<Metadata> MemoryMetadata::remains(Random& random) {
  const size_t loose = history_->batches.size() - history_->synced;
  const size_t kept = history_->synced + random.next_u64() % (loose + 1);
  Content content = content_;
  for (size_t i = 0; i < kept; ++i) {
    history_->batches[i].for_each(
        [&](std::string_view key, std::string_view value) { content[std::string(key)] = value; },
        [&](std::string_view key) { content.erase(std::string(key)); });
  }
  return std::make_shared<MemoryMetadata>(std::move(content), history_->checkpoints);
}

RocksdbMetadata::RocksdbMetadata(uint64_t seed) : random_(seed) {
  std::string path = (std::filesystem::temp_directory_path() / "pnfsrdma-crash-XXXXXX").string();
  CHECK(mkdtemp(path.data()) != nullptr);
  directory_ = path;
}

RocksdbMetadata::~RocksdbMetadata() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::unique_ptr<mds::KeyValueStore> RocksdbMetadata::open(EventLoop& loop, Power&, const Faults&) {
  if (cut_) CHECK(files_.lose_unsynced(&random_));
  cut_ = false;
  const mds::RocksdbOptions options{.path = (directory_ / "store").string(), .env = files_.env()};
  // A sync fails when the power is cut: that run is over then.
  auto store = mds::RocksdbStore::open(loop, options, [](const Error&) {});
  CHECK(store);
  return std::move(*store);
}

std::shared_ptr<Metadata> RocksdbMetadata::remains(Random&) {
  files_.power_off();
  cut_ = true;
  return shared_from_this();
}

}  // namespace pnfsrdma::crash

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

#include "server/mds/meta/rocksdb_store.h"
#include "shared/base/event_loop.h"
#include "tests/doubles/metadata/crash_file_system.h"
#include "tests/doubles/metadata/memory_store.h"

namespace pnfsrdma::mds {

// A directory that goes with its owner.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_("/tmp/meta-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

enum class Engine { kMemory, kRocksdb };

inline std::string engine_name(const ::testing::TestParamInfo<Engine>& info) {
  return info.param == Engine::kMemory ? "Memory" : "Rocksdb";
}

// One store of either engine that can be reopened, in order or after the host crashed.
class StoreUnderTest {
 public:
  explicit StoreUnderTest(Engine engine) : engine_(engine) { open(); }
  ~StoreUnderTest() { store_.reset(); }

  KeyValueStore& operator*() { return *store_; }
  KeyValueStore* operator->() { return store_.get(); }
  EventLoop& loop() { return loop_; }

  // Runs the loop until everything committed so far is durable.
  void settle() {
    ASSERT_TRUE(store_->sync());
    for (int i = 0; i < 3; ++i) loop_.run_once(Milliseconds(0));
  }

  void reopen() {
    if (engine_ == Engine::kMemory) {
      ASSERT_TRUE(store_->sync());
      static_cast<MemoryStore&>(*store_).crash(0);
      return;
    }
    ASSERT_TRUE(store_->close());
    store_.reset();
    open();
  }

  // Everything that was not synced is lost, but for a random first part of it.
  void crash(Random& random) {
    if (engine_ == Engine::kMemory) {
      auto& memory = static_cast<MemoryStore&>(*store_);
      memory.crash(random.next_u64() % (memory.unsynced() + 1));
      return;
    }
    files_.power_off();
    store_.reset();
    ASSERT_TRUE(files_.lose_unsynced(&random));
    open();
  }

 private:
  void open() {
    if (engine_ == Engine::kMemory) {
      store_ = std::make_unique<MemoryStore>(loop_, MemoryStore::Syncing::kManual);
      return;
    }
    auto opened = RocksdbStore::open(loop_, {.path = directory_.path() + "/store", .env = files_.env()});
    ASSERT_TRUE(opened) << opened.error().to_string();
    store_ = *std::move(opened);
  }

  const Engine engine_;
  SystemClock clock_;
  EventLoop loop_{clock_};
  TemporaryDirectory directory_;
  CrashFileSystem files_;
  std::unique_ptr<KeyValueStore> store_;
};

// The base of tests that run over both engines.
class OverBothEngines : public ::testing::TestWithParam<Engine> {
 protected:
  StoreUnderTest store_{GetParam()};
};
#define PNFSRDMA_OVER_BOTH_ENGINES(Suite) \
  INSTANTIATE_TEST_SUITE_P(Engines, Suite, ::testing::Values(Engine::kMemory, Engine::kRocksdb), engine_name)

}  // namespace pnfsrdma::mds

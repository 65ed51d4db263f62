// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "server/brickd/pool.h"
#include "shared/base/guarded.h"
#include "shared/base/owned.h"
#include "shared/pmem/mapping.h"
#include "shared/pmem/page_persistence.h"

namespace pnfsrdma::brick {

// Memory whose flushes wait for a "disk"; as many of the next ones fail as the owner says.
class FaultyPersistence final : public pmem::Persistence {
 public:
  explicit FaultyPersistence(std::atomic<int>& failures) : failures_(failures) {}
  void copy(std::byte* target, ByteSpan source) override { inner_.copy(target, source); }
  void zero(MutableByteSpan target) override { inner_.zero(target); }
  Result<> flush(ByteSpan) override {
    if (failures_ == 0) return {};
    --failures_;
    return fail(EIO, "msync");
  }
  Result<> fence() override { return {}; }
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return true; }

 private:
  pmem::UnflushedPersistence inner_{Durability::kPower};
  std::atomic<int>& failures_;
};

// Memory whose flushes stay in the "disk" while its gate is shut.
class HeldPersistence final : public pmem::Persistence {
 public:
  class Gate {
   public:
    void shut() { *shut_.lock() = true; }
    void open() {
      *shut_.lock() = false;
      changed_.notify_all();
    }
    // Blocks until a flush is held.
    void wait_for_flush() {
      while (held_ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    void pass() {
      auto shut = shut_.lock();
      if (!*shut) return;
      ++held_;
      shut.wait(changed_, [](const bool& now) { return !now; });
      --held_;
    }

   private:
    Guarded<bool> shut_{false};
    std::condition_variable changed_;
    std::atomic<int> held_ = 0;
  };

  explicit HeldPersistence(Gate& gate) : gate_(gate) {}
  void copy(std::byte* target, ByteSpan source) override { inner_.copy(target, source); }
  void zero(MutableByteSpan target) override { inner_.zero(target); }
  Result<> flush(ByteSpan) override {
    gate_.pass();
    return {};
  }
  Result<> fence() override { return {}; }
  Durability durability() const override { return Durability::kPower; }
  bool blocks() const override { return true; }

 private:
  pmem::UnflushedPersistence inner_{Durability::kPower};
  Gate& gate_;
};

inline std::unique_ptr<Pool> make_pool(std::unique_ptr<pmem::Persistence> persistence, Random& random,
                                       uint64_t blocks = 4) {
  auto mapping = pmem::Mapping::anonymous(format::data_offset(kBlockSize, blocks) + blocks * kBlockSize);
  EXPECT_TRUE(mapping);
  EXPECT_TRUE(Pool::format((*mapping)->bytes(), *persistence, {.known_zero = true}, random));
  auto pool = Pool::open(std::move(*mapping), std::move(persistence), SystemClock().now());
  EXPECT_TRUE(pool);
  return std::move(*pool);
}

inline std::unique_ptr<Pool> make_faulty_pool(std::atomic<int>& failures, Random& random) {
  return make_pool(std::make_unique<FaultyPersistence>(failures), random);
}

// A formatted pool in a file on a disk, flushed by msync; gone with it.
class FilePool {
 public:
  explicit FilePool(Random& random, uint64_t blocks = 4) : path_("/var/tmp/brick-test.XXXXXX") {
    const FileDescriptor fd(mkstemp(path_.data()));
    EXPECT_TRUE(fd);
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>((blocks + 1) * kBlockSize)), 0);
    const auto mapping = pmem::Mapping::open(path_);
    EXPECT_TRUE(mapping);
    pmem::SyncPersistence persistence;
    EXPECT_TRUE(Pool::format((*mapping)->bytes(), persistence, {.known_zero = true}, random));
  }
  ~FilePool() { unlink(path_.c_str()); }
  FilePool(const FilePool&) = delete;
  FilePool& operator=(const FilePool&) = delete;

  std::unique_ptr<Pool> open() const {
    auto mapping = pmem::Mapping::open(path_);
    EXPECT_TRUE(mapping);
    auto pool =
        Pool::open(std::move(*mapping), std::make_unique<pmem::SyncPersistence>(), SystemClock().now());
    EXPECT_TRUE(pool);
    return std::move(*pool);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace pnfsrdma::brick

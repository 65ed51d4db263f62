// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/base/random.h"
#include "shared/base/result.h"

namespace rocksdb {
class Env;
}

namespace pnfsrdma::mds {

// The host's files under RocksDB, with a memory of what was synced: afterwards the files can be made to look
// as after a power failure. For crash tests: open a store with env(), power_off(), destroy the store,
// lose_unsynced(), open again.
class CrashFileSystem {
 public:
  CrashFileSystem();
  ~CrashFileSystem();
  CrashFileSystem(const CrashFileSystem&) = delete;
  CrashFileSystem& operator=(const CrashFileSystem&) = delete;

  // For RocksdbOptions::env. Must outlive every store opened with it.
  rocksdb::Env* env();

  // From now on every write goes nowhere and every sync fails, so that closing a store cannot save anything.
  void power_off();
  // The same, when so many writes, syncs, links and other changes have been done.
  void power_off_after(uint64_t events);
  bool is_off() const;
  // Cuts each file to a length between what was synced and what was written: all of the rest is lost, or,
  // with `random`, all but a random part, torn at any byte. Files never synced and cut to nothing stay,
  // empty. The power is on again.
  Result<> lose_unsynced(Random* random = nullptr);

  // The power is on again and all that was written is there, as if only the process had died at power_off().
  void power_on();

  // The next syncs, or writes, fail with EIO, until told otherwise.
  void fail_syncs(bool fail);
  void fail_writes(bool fail);
  uint64_t syncs() const;
  uint64_t writes() const;  // of files' ends

 private:
  class Files;
  class WritableFile;
  struct State;

  std::shared_ptr<State> state_;
  std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace pnfsrdma::mds

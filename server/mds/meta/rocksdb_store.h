// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/mds/meta/key_value.h"
#include "shared/base/event_loop.h"
#include "shared/base/result.h"

namespace rocksdb {
class Env;
}

namespace pnfsrdma::mds {

struct RocksdbOptions {
  std::string path;                           // a directory; its parent must exist
  bool create = true;                         // false: ENOENT if there is no store
  uint64_t cache_bytes = uint64_t{64} << 20;  // of table blocks
  uint64_t memtable_bytes = uint64_t{32} << 20;
  // Start with what is left of a store whose log has lost what was synced; a copy of it is kept beside it.
  bool accept_loss = false;
  rocksdb::Env* env = nullptr;  // null: the host's. Must outlive the store
};

// The embedded engine. Commits go to the memtable at once and, all of a turn by one write(2), to the kernel when the
// loop's turn ends; a thread of its own calls SyncWAL, one for all batches before it, and posts the progress to the
// loop (CommitThread; where that waits for no device the loop calls it). An idle store costs no CPU.
class RocksdbStore {
 public:
  // Makes the store if there is none. Errors say what to do: another process has it open, a newer program
  // wrote it, no permission, its log has lost what was synced (EUCLEAN; nothing was changed). `failed` is
  // posted to the loop, once, if a sync or a write of the log ever fails: nothing unsynced can be trusted
  // then, and the daemon must end.
  static Result<std::unique_ptr<KeyValueStore>> open(EventLoop& loop, const RocksdbOptions& options,
                                                     std::function<void(Error)> failed = nullptr);

  // Makes the directory `path`, which is not there, a store of its own out of links: with what `store`, which open()
  // gave, has committed by now or by then, and with its checkpoints. `done` as of KeyValueStore::checkpoint(). ENOSPC,
  // EIO: the directory may be there.
  static void copy_to(KeyValueStore& store, const std::string& path, std::function<void(Result<>)> done);
};

}  // namespace pnfsrdma::mds

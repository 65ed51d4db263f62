// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/initiator/file/file_sync.h"
#include "shared/initiator/file/read_back.h"
#include "shared/initiator/file/signals.h"
#include "shared/initiator/file/sync_habit.h"
#include "shared/initiator/file/transfer.h"
#include "shared/initiator/file/truncater.h"
#include "shared/initiator/file/watcher.h"
#include "shared/initiator/file/words.h"

namespace pnfsrdma::initiator {

// The inside of a FileIo: what works on one file, each with those above it that it needs. Shared with tasks
// that outlive a call.
struct FileInside : FileState {
  FileInside(const Mount& what, AllFiles& all, nfs4::FileHandle file, uint64_t size);

  Barrier barrier;
  ThroughMds through_mds;
  Restorer restorer;
  Committer committer;
  GrowthRoom growth_room;
  VerifierCheck verifiers;
  BrickFlusher brick_flusher;
  Flusher flusher;
  FileSync file_sync;
  Returner returner;
  Truncater truncater;
  LayoutGetter layout_getter;
  BrickIo brick_io;
  Transfer transfer;
  Words words;
  ReadBack read_back;
  Watcher watcher;
  Signals signals;
  SyncHabit sync_habit;
  AllFiles& all_files;
  const Mount& mount;  // the table's; for tests
};

}  // namespace pnfsrdma::initiator

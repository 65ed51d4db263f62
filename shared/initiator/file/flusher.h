// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "shared/base/sync.h"
#include "shared/initiator/file/background.h"
#include "shared/initiator/file/brick_flusher.h"

namespace pnfsrdma::initiator {

// Flushes what was written of one file, one flush at a time; those that come meanwhile wait for it. What the
// MDS has lost before its COMMIT is written again and flushed once more. No mutex is held across a call.
// Thread-safe.
class Flusher {
 public:
  Flusher(FileState& file, BrickFlusher& bricks, ThroughMds& through_mds, Restorer& restorer,
          Committer& committer, Background& closing)
      : file_(file),
        bricks_(bricks),
        through_mds_(through_mds),
        restorer_(restorer),
        committer_(committer),
        closing_(closing) {}

  // Flushes what was written and is not flushed. `through_gate`: for a recall or truncation; what the MDS has
  // lost is not written again then (EAGAIN). Error: kBrickSilent among others.
  Result<> flush(bool through_gate);
  // The same, by another thread.
  void flush_beside();
  // Flushes and commits, if something was unflushed at the last call, too. By one thread.
  void flush_if_old();
  // Something written is not flushed, or a flush is under way.
  bool to_be_flushed();
  // FileState::unstable_in_doubt() ends, or an error says that nobody wants to know any more.
  Result<> settle_doubt();

 private:
  // By whoever has claimed the flush. `sent_again`: some of it was, and has to be flushed once more.
  Result<> flush_claimed(bool through_gate);
  Result<> flush_all(const Flush& flush, bool through_gate, bool& sent_again);
  Result<> flush_mds(const Flush& flush, bool through_gate, bool& sent_again);
  Result<> send_held(const Flush& flush);
  void set_sending_again(bool sending);

  FileState& file_;
  BrickFlusher& bricks_;
  ThroughMds& through_mds_;
  Restorer& restorer_;
  Committer& committer_;
  Background& closing_;

  std::atomic<bool> posted_{false};  // flush_beside()'s task
  bool was_unflushed_ = false;       // flush_if_old()'s
  Mutex mutex_;
  Condition flushed_;
  // Guarded by mutex_.
  bool flushing_ = false;
  bool sending_again_ = false;
  uint64_t silent_flushes_ = 0;  // that ended with kBrickSilent
};

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/initiator/file/flusher.h"

namespace pnfsrdma::initiator {

// Gives layouts of one file back. The order is what makes it safe: gate, drain, flush, LAYOUTCOMMIT,
// LAYOUTRETURN (a late access kills the queue pair and with it everybody's I/O). Waits for bricks and the
// MDS, on threads of the data path's own: no lock that a FUSE thread holds across a call. Thread-safe;
// without a state of its own.
class Returner {
 public:
  Returner(FileState& file, Barrier& barrier, ThroughMds& through_mds, Committer& committer, Flusher& flusher)
      : file_(file), barrier_(barrier), through_mds_(through_mds), committer_(committer), flusher_(flusher) {}

  // The gate is closed for `gate`. Drains, flushes, commits, returns `returned`. `changed`: clora_changed.
  void give_back(nfs4::IoMode iomode, FileRange gate, FileRange returned, bool changed);
  // The same of everything, but the LAYOUTRETURN is one for all files, and somebody else's: between the two.
  void begin_bulk_return(FileRange gate, bool changed);
  void end_bulk_return(FileRange gate, bool answered);
  // What a return needs of what lies behind the gate. Error: the MDS was not told of the growth.
  Result<> prepare_return(FileRange gate, bool changed);
  // Everything, by ourselves: unmount, RECALL_ANY, a closed file that is dropped.
  void return_everything();

 private:
  FileState& file_;
  Barrier& barrier_;
  ThroughMds& through_mds_;
  Committer& committer_;
  Flusher& flusher_;
};

}  // namespace pnfsrdma::initiator

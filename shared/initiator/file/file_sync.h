// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/initiator/file/error_cursor.h"
#include "shared/initiator/file/flusher.h"

namespace pnfsrdma::initiator {

// What fsync, fdatasync and close answer. Waits as the mount does. Thread-safe; without a state of its own.
class FileSync {
 public:
  FileSync(FileState& file, Committer& committer, Flusher& flusher, ThroughMds& through_mds)
      : file_(file), committer_(committer), flusher_(flusher), through_mds_(through_mds) {}

  Result<> sync(bool data_only, ErrorCursor& cursor);
  // An fsync's outcome; a loss the open file has not heard of is one.
  Result<> report_once(ErrorCursor& cursor, Result<> outcome);
  Result<> report(bool lost, Result<> outcome);

 private:
  FileState& file_;
  Committer& committer_;
  Flusher& flusher_;
  ThroughMds& through_mds_;
};

}  // namespace pnfsrdma::initiator

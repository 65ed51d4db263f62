// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pnfsrdma::initiator {

class FileState;

// What one file asks of all files of its mount (FileTable), which are built from it. Never per I/O.
// Thread-safe.
class AllFiles {
 public:
  // Starts to commit what all files have grown by, so that less has to be kept; or has another thread do it.
  virtual void commit_growth() = 0;
  virtual void commit_growth_soon() = 0;
  // Has another thread flush every file that keeps copies of what went through the MDS.
  virtual void flush_unstable_soon() = 0;
  // What files hold, a second later.
  virtual void flush_held_later() = 0;
  // The last close: its source is not asked any more. Layouts over the limit are returned by another thread.
  virtual void closed(FileState& file) = 0;

 protected:
  ~AllFiles() = default;
};

}  // namespace pnfsrdma::initiator

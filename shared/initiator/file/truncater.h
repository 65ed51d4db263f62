// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/base/sync.h"
#include "shared/initiator/file/returner.h"

namespace pnfsrdma::initiator {

// A truncation of our own, around the SETATTR(size) that somebody else sends: what lies behind the new size
// is returned before it, and the sizes follow its answer. One of a file at a time. Thread-safe.
class Truncater {
 public:
  Truncater(FileState& file, Committer& committer, Returner& returner)
      : file_(file), committer_(committer), returner_(returner) {}

  // FileIo::truncating(), layout_returned() and truncated().
  Result<std::optional<nfs4::LayoutReturnArguments>> begin(uint64_t new_size);
  void layout_returned(const nfs4::LayoutReturnResult& result);
  uint64_t end(uint64_t new_size, bool done);

 private:
  struct Turn {
    FileRange gate;
    bool closed = false;
    bool returning = false;  // the LAYOUTRETURN is not answered yet
    nfs4::Stateid sent;      // what it is of, if there is anything
    uint64_t holdings = 0;   // LayoutCache::holdings() before the SETATTR
  };
  Result<std::optional<nfs4::LayoutReturnArguments>> prepare(uint64_t new_size);
  // The SETATTR may be sent.
  void ready(const Turn& turn);
  Turn end_turn();

  FileState& file_;
  Committer& committer_;
  Returner& returner_;
  Mutex mutex_;
  Condition done_;
  std::optional<Turn> turn_;  // between begin() and end()
};

}  // namespace pnfsrdma::initiator

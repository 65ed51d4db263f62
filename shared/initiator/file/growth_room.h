// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/initiator/file/committer.h"

namespace pnfsrdma::initiator {

// Room for the copies of what a file grows by, out of the mount's, which is bounded: makes some when there is
// none, and commits in time. Thread-safe; without a state of its own.
class GrowthRoom {
 public:
  GrowthRoom(FileState& file, Committer& committer, KeptMemory& kept_memory, AllFiles& all_files, Told& told)
      : file_(file), committer_(committer), kept_memory_(kept_memory), all_files_(all_files), told_(told) {}

  // For a copy of what such a write brings beyond the server's end of file. None: make_room(), outside of the
  // gate.
  std::optional<KeptWrites::Room> room_for_copy(const LayoutPin& pin);
  // Waits. False: there is none for long; through the MDS.
  bool make_room();
  // When much is kept: commits without being asked.
  void commit_early();

 private:
  FileState& file_;
  Committer& committer_;
  KeptMemory& kept_memory_;
  AllFiles& all_files_;
  Told& told_;
};

}  // namespace pnfsrdma::initiator

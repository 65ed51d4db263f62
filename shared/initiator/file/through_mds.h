// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <span>

#include "shared/initiator/file/all_files.h"
#include "shared/initiator/file/file_state.h"
#include "shared/initiator/file/io.h"

namespace pnfsrdma::initiator {

// What is held of a file ends here, and is held no longer.
inline constexpr uint64_t kHeldEndMax = uint64_t{64} << 10;
inline constexpr Milliseconds kHeldAtMost{1000};

// READ, WRITE and COMMIT of one file through the MDS, where no layout is available. It asks for no barrier:
// that nothing which was posted comes over such a WRITE is for its caller to know (Barrier). What the WRITEs
// brought is kept until COMMIT, inside of FileState::dirty. Thread-safe.
class ThroughMds {
 public:
  ThroughMds(FileState& file, UnstableMemory& unstable_memory, AllFiles& all_files, Told& told)
      : file_(file), unstable_memory_(unstable_memory), all_files_(all_files), told_(told) {}

  Result<size_t> read(uint64_t offset, BufferSlice sink);
  // Keeps the bytes here until they are flushed, which is begun after kHeldAtMost if nobody asks for it before. False:
  // that must not be (no write delegation, no room), and nothing has happened.
  Result<bool> hold(uint64_t offset, BufferSlice source);
  // Waits for whoever writes again what the MDS has lost. What fits into one WRITE is durable at once if it is to be
  // (`stability`), and when it is the first since the last closed(): most often it is the only one, and then there is
  // nothing to COMMIT at close.
  Result<size_t> write(uint64_t offset, BufferSlice source, Stability stability);
  // Somebody has closed the file.
  void closed() { first_ = true; }
  // Durable when it is answered, as what may have been closed already must be; or not, and then with a copy until
  // COMMIT, as long as there is room for copies.
  enum class Until { kDurable, kCopied };
  // Under which stateid. kDelegation: what was held, and is lost with it (EIO, an answer).
  enum class Under { kOpen, kDelegation };
  // The same as write() without waiting, by whoever writes again.
  Result<size_t> send_writes(uint64_t offset, BufferSlice source, Until until, Under under = Under::kOpen);
  Result<WriteVerifier> commit(std::span<const FileRange> ranges);
  // What went through the MDS lies on a device that it alone knows: it is asked for the least of all, where
  // the mount requires memory that survives a loss of power. EIO: there is less.
  Result<> check_server();

 private:
  Result<uint32_t> send_write(uint64_t offset, BufferSlice source, Until until, Under under);
  bool find_stateid(Under under, FileReference& file, nfs4::Stateid& stateid);
  bool renew_stateid(Under under, const nfs4::Stateid& refused, int& tries);

  FileState& file_;
  UnstableMemory& unstable_memory_;
  AllFiles& all_files_;
  Told& told_;
  std::atomic<bool> first_ = true;
  // WRITEs, and how many of them check_server() has found well.
  std::atomic<uint64_t> written_{0}, checked_{0};
};

}  // namespace pnfsrdma::initiator

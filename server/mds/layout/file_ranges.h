// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "server/mds/bricks/brick_set.h"
#include "server/mds/layout/layouts.h"
#include "shared/base/lifetime.h"
#include "shared/nfs4/minor2_operations.h"

namespace pnfsrdma::mds {

// Memory for a range of a file, a hole instead of one, and where either is (RFC 7862: ALLOCATE, DEALLOCATE, SEEK).
// Control loop only.
class FileRanges {
 public:
  // Whose memory, and on whose behalf.
  struct Target {
    uint64_t client = 0;
    uint64_t inode = 0;
    bool clear_setid = false;  // the writer is not privileged: setuid and setgid go
  };
  using Done = std::function<void(nfs4::Status)>;
  using Found = std::function<void(std::expected<nfs4::SeekResult, nfs4::Status>)>;

  FileRanges(const Clock& clock, EventLoop& loop, Namespace& names, BrickSet& bricks, FileSpace& space,
             LayoutTable& table, InodeQueue& queue, Layouts& layouts);
  FileRanges(const FileRanges&) = delete;
  FileRanges& operator=(const FileRanges&) = delete;

  // Each byte of the range has memory, and zeros where it had none; the file ends at its end at least. kSliceBytes, or
  // kExtentsPerTurn extents, each turn of the inode: an error may leave the first part done, the size included. NOSPC
  // (at once where it can never do), DELAY, FBIG, IO, STALE.
  void allocate(const Target& target, const ByteRange& range, Done done);
  // The range reads as zeros, and has no memory but for the grains at its ends; what is behind the end of the file
  // stays. Layouts there are recalled. DELAY, IO, STALE.
  void deallocate(const Target& target, const ByteRange& range, Done done);
  // The first byte of that kind at or behind `offset`, as far as the server knows: writes under a layout count from
  // their LAYOUTCOMMIT on. The end of the file is a hole; if there are no data any more it is the end that is found.
  // NXIO: `offset` is not in the file.
  void seek(uint64_t inode, uint64_t offset, nfs4::ContentType what, Found done);

  static constexpr uint64_t kSliceBytes = uint64_t{64} << 20;
  static constexpr size_t kExtentsPerTurn = 512;

 private:
  struct Allocating;
  using AllocatingPointer = std::shared_ptr<Allocating>;
  struct Seeking;

  void next_slice(const AllocatingPointer& work);
  void make_end_free(const AllocatingPointer& work, const Inode& present);
  void plan_slice(const AllocatingPointer& work);
  void shorten_slice(const AllocatingPointer& work);
  void plan_present_slice(const AllocatingPointer& work);
  void plan_own_slice(const AllocatingPointer& work);
  void fill_slice(const AllocatingPointer& work, const AllocationPlan& plan);
  void end_slice(const AllocatingPointer& work, nfs4::Status status);
  void punch(const Target& target, const ByteRange& range, const InodeQueue::Turn& turn, const Done& done);
  void punch_present(const Target& target, const ByteRange& range, const InodeQueue::Turn& turn,
                     const Done& done);
  void seek_on(const std::shared_ptr<Seeking>& work);
  Outcome<InodePointer> present(uint64_t inode, const ByteRange& range);

  const Clock& clock_;
  EventLoop& loop_;
  Namespace& names_;
  BrickSet& bricks_;
  FileSpace& space_;
  LayoutTable& table_;
  InodeQueue& queue_;
  Layouts& layouts_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

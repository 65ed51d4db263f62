// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>

#include "server/mds/bricks/write_verifiers.h"
#include "server/mds/layout/layouts.h"
#include "server/mds/layout/range_persister.h"
#include "shared/base/lifetime.h"
#include "shared/nfs4/file_operations.h"

namespace pnfsrdma::mds {

// READ, READ_PLUS, WRITE and COMMIT through the server: the MDS reaches brick memory as one more initiator, so its
// bytes are those the layouts show, at once. Control loop only.
//
// Cost of a READ: one RDMA READ per extent, straight into the reply's buffer, no copy. Of a WRITE: one copy
// of the data (the request's record may go before the RDMA WRITE is through), one RDMA WRITE per extent, one
// brick call when it must be stable. An unstable one that grows a file into fresh memory waits for no sync of
// the metadata; COMMIT does.
class FileIo {
 public:
  struct Read {
    std::shared_ptr<Bytes> data;
    bool end_of_file = false;
  };
  // Bytes from there on, or a hole. Holes are whole grains but for the ends of what was asked for.
  struct Piece {
    uint64_t offset = 0;
    uint64_t length = 0;
    std::shared_ptr<Bytes> data;  // null: a hole
  };
  struct Pieces {
    std::vector<Piece> pieces;  // in order, without a gap
    bool end_of_file = false;
  };
  struct Write {
    uint64_t client = 0;
    uint64_t inode = 0;
    uint64_t offset = 0;
    std::shared_ptr<const Bytes> data;
    nfs4::StableHow stable = nfs4::StableHow::kUnstable;
    bool clear_setid = false;  // the writer is not privileged: setuid and setgid go
  };
  template <typename T>
  using Done = std::function<void(std::expected<T, nfs4::Status>)>;

  FileIo(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks, FileSpace& space,
         LayoutTable& table, InodeQueue& queue, Layouts& layouts, uint64_t metadata_era);
  FileIo(const FileIo&) = delete;
  FileIo& operator=(const FileIo&) = delete;

  // At most `count` bytes from `offset`; holes, and what a truncation has cut, read as zeros.
  void read(uint64_t inode, uint64_t offset, uint32_t count, Done<Read> done);
  // At most `count` bytes from `offset`, the holes told as such; its data, and kPieceBytes for each piece, are at most
  // `room`.
  void read_pieces(uint64_t inode, uint64_t offset, uint32_t count, uint32_t room, Done<Pieces> done);
  static constexpr uint32_t kPieceBytes = 20;  // READ_PLUS: kind, offset, length; padding, or a longer length
  // All of `data` or an error. NOSPC, DELAY, FBIG, IO, STALE. `stable`: durable on the brick before `done`.
  void write(Write what, Done<nfs4::WriteResult> done);
  // Makes what was written durable, in batches of kExtentsPerBatch extents; `done` behind the last one. A count of 0:
  // to the end of the file.
  void commit(uint64_t inode, uint64_t offset, uint32_t count, Done<nfs4::Verifier> done);
  // Makes durable what WRITEs have left to a COMMIT, of all files that are still kept track of (WriteVerifiers).
  // False: a brick is away, or failed.
  void commit_all(std::function<void(bool)> done);

 private:
  struct Writing;
  using WritingPointer = std::shared_ptr<Writing>;
  enum class Obstacle { kNone, kHole, kSeenHole, kShared, kDirtyTail, kWriters };

  // What a READ gets: so many bytes, from there.
  struct Place {
    uint64_t length = 0;
    bool end_of_file = false;
    std::vector<Mapping> mapped;
  };

  std::expected<Place, nfs4::Status> place_of(uint64_t inode, uint64_t offset, uint32_t count);
  // Bytes of the file, and where they go.
  struct Transfer {
    Mapping from;
    MutableByteSpan sink;
    std::shared_ptr<Bytes> owner;
  };
  // What it is, by a shared turn of the inode.
  using Placed = std::function<void(std::expected<Place, nfs4::Status>, InodeQueue::Turn)>;
  void find_place(uint64_t inode, uint64_t offset, uint32_t count, Placed placed);
  void transfer(const std::vector<Transfer>& transfers, InodeQueue::Turn turn,
                std::function<void(nfs4::Status)> done);
  // What is in the way of a WRITE, and where its bytes go as far as there is memory.
  struct Sight {
    InodePointer inode;
    Obstacle obstacle = Obstacle::kNone;
    std::vector<Mapping> mapped;
  };
  std::expected<Sight, nfs4::Status> look(const Writing& work);
  std::expected<Obstacle, nfs4::Status> obstacle(const Writing& work, const Sight& sight);
  // The next step, with what is there now.
  using Step = void (FileIo::*)(const WritingPointer& work, Sight sight);
  void look_and(Step step, const WritingPointer& work);
  void begin_write(const WritingPointer& work, Sight sight);
  void write_in_place(const WritingPointer& work, Sight sight);
  void write_exclusively(const WritingPointer& work);
  void clear_writers(const WritingPointer& work, Sight sight);
  void go_on_without_writers(const WritingPointer& work, bool cleared, nfs4::Status absent);
  void write_over_clean_tail(const WritingPointer& work);
  void write_to_own_memory(const WritingPointer& work);
  void unshare(const WritingPointer& work, const ByteRange& stretch);
  void fill_or_place(const WritingPointer& work, Sight sight);
  void allocate(const WritingPointer& work);
  struct Filling;
  std::expected<Filling, nfs4::Status> filling(const Writing& work);
  void fill(const WritingPointer& work, const Inode& inode, const AllocationPlan& plan);
  void place_filled(const WritingPointer& work);
  void clear_seen_holes(const WritingPointer& work);
  void commit_size(const WritingPointer& work, Sight sight);
  void place_in_own(const WritingPointer& work);
  void place_when_synced(const WritingPointer& work);
  void place(const WritingPointer& work);
  void placed(const WritingPointer& work);
  void make_stable(const WritingPointer& work, uint64_t size);
  struct Committing;
  void persist(uint64_t inode, const std::vector<brick::Range>& memory, bool whole,
               Done<nfs4::Verifier> done);
  void committed(uint64_t inode, uint64_t mark, bool whole, const Done<nfs4::Verifier>& done);
  void commit_some(const std::shared_ptr<const std::vector<uint64_t>>& files, size_t next, bool good,
                   std::function<void(bool)> done);
  static void finish(const WritingPointer& work, std::expected<nfs4::WriteResult, nfs4::Status> answer);

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  BrickSet& bricks_;
  FileSpace& space_;
  LayoutTable& table_;
  InodeQueue& queue_;
  Layouts& layouts_;
  WriteVerifiers verifiers_;
  const WriteVerifiers::Current verifier_now_;
  RangePersister persister_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>

#include "server/mds/layout/layouts.h"
#include "shared/base/lifetime.h"
#include "shared/base/random.h"
#include "shared/nfs4/pnfs_operations.h"

namespace pnfsrdma::mds {

// LAYOUTGET behind its checks: who asks, for what, and how much he can take.
struct GrantRequest {
  uint64_t client = 0;
  uint64_t inode = 0;
  uint16_t export_id = 0;  // and generation: how the client names the file
  uint64_t generation = 0;
  bool old_handle = false;
  IoMode mode = IoMode::kRead;
  ByteRange range;                       // [offset, offset + length): how far the client could use more
  uint64_t min_length = 0;               // what it needs
  uint32_t max_bytes = 0;                // of the LayoutGetResult
  bool clear_setid = false;              // whoever asks to write is not privileged
  bool wants_end = false;                // he appends: the end of the file for himself, if it can be had
  std::optional<LayoutStateid> stateid;  // the layout's; none when asked under an open stateid
  // Asked in the turn of the answer: whether what the request was checked by is still so. None: it is.
  std::function<bool()> still_allowed;
};

// Gives clients grants on the memory of files. One grant is one segment; a range already held is answered
// with the same grants. What is booked for a client is what an answer has told it, no more: a grant it does
// not know it would never give back. Under the inode's exclusive turn, in this order, a crash between any two
// lines costs nothing but a leak:
//   recall what is shared, copy it -> recall holes others see -> memory from the brick -> commit extents,
//   "tail may be dirty", "somebody writes" -> sync -> expose -> put the layout on record -> answer
// Control loop only.
class LayoutGranter {
 public:
  using Answer = std::expected<nfs4::LayoutGetResult, nfs4::Status>;
  using Done = std::function<void(Answer)>;

  LayoutGranter(Namespace& names, BrickSet& bricks, FileSpace& space, LayoutTable& table, InodeQueue& queue,
                Layouts& layouts, LayoutRecords& records, Counters& counters, Random& random);
  LayoutGranter(const LayoutGranter&) = delete;
  LayoutGranter& operator=(const LayoutGranter&) = delete;

  // Errors: BADLAYOUT, LAYOUTTRYLATER, RECALLCONFLICT, RETURNCONFLICT, TOOSMALL, BAD_STATEID, OLD_STATEID,
  // ADMIN_REVOKED, NOSPC, DELAY, STALE, IO.
  void grant(const GrantRequest& request, Done done);

 private:
  struct Work;
  using WorkPointer = std::shared_ptr<Work>;

  void when_present(const WorkPointer& work, std::function<void()> then);
  void begin(const WorkPointer& work);
  std::optional<nfs4::Status> refusal(const GrantRequest& request);
  void make_writable(const WorkPointer& work);
  void own(const WorkPointer& work);
  void unshare(const WorkPointer& work, const ByteRange& stretch);
  void fill(const WorkPointer& work);
  std::expected<std::optional<AllocationPlan>, nfs4::Status> filling(const Work& work);
  void fill_holes(const WorkPointer& work, const AllocationPlan& plan);
  void allocate(const WorkPointer& work, const AllocationPlan& plan, Batch marks);
  void clear_stale_holes(const WorkPointer& work);
  void note_writer(const WorkPointer& work);
  std::expected<Batch, nfs4::Status> marks_of_grant(const GrantRequest& request);
  void when_durable(const WorkPointer& work);
  void find_gaps(const WorkPointer& work);
  Outcome<std::vector<Extent>> extents_to_expose(const GrantRequest& request, const ByteRange& range);
  void list_gaps(const WorkPointer& work, const ByteRange& range, const std::vector<Extent>& extents);
  void expose_next(const WorkPointer& work);
  void expose(const WorkPointer& work, const Extent& gap);
  bool keep(const WorkPointer& work, const Extent& gap, const brick::ExposeResult& exposed);
  void tell_of_filled_holes(const WorkPointer& work);
  uint64_t holes_end(const WorkPointer& work, uint64_t size) const;
  void note_holes(const WorkPointer& work);
  std::expected<std::vector<ByteRange>, nfs4::Status> holes_to_tell(const WorkPointer& work);
  void answer(const WorkPointer& work);
  void answer_now(const WorkPointer& work);
  void tell_end(const GrantRequest& request, HeldLayout& layout, nfs4::Layout& told);
  void fail(const WorkPointer& work, nfs4::Status status);
  void take_back_untold(const WorkPointer& work, uint64_t told_end);
  HeldLayout& layout_of(const GrantRequest& request);
  Batch writer_marks(const GrantRequest& request, bool mark_tail);

  Namespace& names_;
  BrickSet& bricks_;
  FileSpace& space_;
  LayoutTable& table_;
  InodeQueue& queue_;
  Layouts& layouts_;
  LayoutRecords& records_;
  Counters& counters_;
  Random& random_;
  uint64_t next_end_token_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

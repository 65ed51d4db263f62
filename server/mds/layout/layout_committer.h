// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "server/mds/layout/layouts.h"
#include "server/mds/layout/range_persister.h"
#include "shared/base/lifetime.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::mds {

// LAYOUTCOMMIT behind the checks of its arguments.
struct CommitRequest {
  uint64_t client = 0;
  uint64_t inode = 0;
  LayoutStateid stateid;
  ByteRange range;
  std::optional<uint64_t> last_write_offset;
  std::optional<WallTime> mtime;
  std::vector<nfs4::PersistRange> persist;
  bool clear_setid = false;  // the writer is not privileged
};

// LAYOUTCOMMIT: has the brick flush what the client asks for, then grows the size and moves mtime on. It
// takes no turn of the inode: whoever holds one may be waiting for the layout to come back, and the client
// commits before it returns. So it checks again, in the loop turn in which it commits, that the client still
// holds what it speaks of.
//
// The flush takes many turns where there are many extents (RangePersister); size and times change after all of it, in
// one batch. So a crash or an error in between leaves the old size, and behind it bytes that the tail record speaks
// of; before it, bytes that the client was allowed to write at any time: nothing of a LAYOUTCOMMIT that was not
// answered shows but what may show without it. Control loop only.
class LayoutCommitter {
 public:
  // The new size, if it has changed.
  using Answer = std::expected<std::optional<uint64_t>, nfs4::Status>;
  using Done = std::function<void(Answer)>;

  LayoutCommitter(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks, FileSpace& space,
                  Layouts& layouts);
  LayoutCommitter(const LayoutCommitter&) = delete;
  LayoutCommitter& operator=(const LayoutCommitter&) = delete;

  // BADLAYOUT, BADIOMODE, BAD_STATEID, OLD_STATEID, ADMIN_REVOKED, INVAL, DELAY, IO, STALE: then nothing has
  // changed.
  void commit(CommitRequest request, Done done);

 private:
  std::expected<InodePointer, nfs4::Status> check(const CommitRequest& request);
  using RequestPointer = std::shared_ptr<const CommitRequest>;
  void look_and(const RequestPointer& request, std::function<void()> then);
  void persist(const RequestPointer& request, const Done& done);
  void conclude(const RequestPointer& request, const Done& done);
  Answer apply(const CommitRequest& request);

  const Clock& clock_;
  Namespace& names_;
  FileSpace& space_;
  Layouts& layouts_;
  RangePersister persister_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

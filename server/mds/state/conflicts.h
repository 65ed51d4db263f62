// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/mds/state/recaller.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::mds {

struct InodeUpdate;

// What the rest of the MDS tells the layouts before, or after, it does something that touches memory clients
// may hold. Implemented by Layouts. Control loop only; every `done` is called exactly once, at once or later,
// from the loop.
//
// Waiting: a handler asks through its Suspension. An operation that has to recall is answered within 250 ms:
// then `done` gets NFS4ERR_DELAY while the recall goes on, and the client's retry finds it finished.
class LayoutConflicts {
 public:
  using Done = std::function<void(nfs4::Status)>;
  virtual ~LayoutConflicts() = default;

  // Sets the size of a regular file: recalls what has to be recalled, commits size, extents, mtime, ctime and
  // change, frees and zeroes. When `done` gets NFS4_OK the new size is committed (not yet synced: the reply's
  // group commit waits) and no byte behind it will ever be readable again. The caller has checked
  // permissions, stateid and limits. Every change of size goes through here: SETATTR(size), OPEN with size 0,
  // exclusive create that truncates.
  virtual void set_size(uint64_t inode, uint64_t size, uint64_t requester, Done done) = 0;

  // mode, owner, owner_group or ACL are about to change: layouts of clients that do not have the file open
  // are recalled (open files keep access). Call before the change is committed.
  virtual void before_access_change(uint64_t inode, uint64_t requester, Done done) = 0;

  // A file is about to get this owner or group, and perhaps this size: memory is taken back from ahead of files where
  // whoever is to have it may not have as much. Call before anything is changed. kDQuot, kDelay.
  virtual void before_owner_change(uint64_t inode, const InodeUpdate& owners, Done done) = 0;

  // setuid or setgid is about to be set: layouts to write by are recalled from everybody, because a write by
  // RDMA would not clear it. Call before the change is committed.
  virtual void before_set_id(uint64_t inode, uint64_t requester, Done done) = 0;

  // The file is about to be opened for writing: who appends to it as its only writer has to ask again where it
  // ends, so what he holds behind its end is recalled.
  virtual void before_open_to_write(uint64_t inode, uint64_t requester, Done done) = 0;
  // Somebody else has become its only writer since before_open_to_write().
  virtual bool has_sole_writer(uint64_t inode, uint64_t requester) const = 0;

  // Whether anybody else holds a layout to write the file by, or may do so unknown to us: one of an earlier run
  // of the server, whose bricks have not shut it out yet.
  virtual bool may_be_written_by_others(uint64_t inode, uint64_t client) const = 0;
  // The same of any layout of the file.
  virtual bool may_be_used_by_others(uint64_t inode, uint64_t client) const = 0;

  // The last link is gone and the orphan record is in the same batch as the removal of the entry; REMOVE and
  // RENAME may be answered right after. Layouts are recalled and the file freed once nobody has it open.
  // Survives a restart.
  virtual void on_orphaned(uint64_t inode) = 0;

  // Nobody has these files open any more: orphans go, space allocated ahead of the size is given back. `done`
  // when that has begun for all of them.
  virtual void on_last_close(std::vector<uint64_t> files, std::function<void()> done) = 0;

  // The lease expired, DESTROY_CLIENTID, or the client rebooted: fences first. `done` when no memory of any
  // brick is reachable for this client any more and its layouts are gone; only then may its state be dropped.
  virtual void on_client_gone(uint64_t client, std::function<void()> done) = 0;

  // The client's write delegation of the file is about to be revoked: whoever gets the file next may lock what it has
  // locked. Its layout of the file is revoked; `done` when it can reach nothing of it. That stays so, and it gets no
  // layout of the file, until the last copy of the fence is gone; from a LAYOUTGET that was under way not behind that
  // either.
  using Fence = std::shared_ptr<const void>;
  virtual void before_delegation_revoked(uint64_t client, uint64_t inode,
                                         std::function<void(Fence)> done) = 0;

  // TEST_STATEID: NFS4_OK, or NFS4ERR_BAD_STATEID, OLD_STATEID, or ADMIN_REVOKED for one revoked and not yet
  // freed.
  virtual nfs4::Status test_stateid(uint64_t client, const LayoutStateid& stateid) const = 0;
  // FREE_STATEID: NFS4_OK for a revoked one, NFS4ERR_LOCKS_HELD for a live one, NFS4ERR_BAD_STATEID else.
  virtual nfs4::Status free_stateid(uint64_t client, const LayoutStateid& stateid) = 0;
  // For Namespace::set_in_use: somebody may still reach the file's memory.
  virtual bool file_in_use(uint64_t inode) const = 0;
  // CLIENTID_BUSY of DESTROY_CLIENTID (RFC 8881, 18.50.3).
  virtual bool client_holds_layouts(uint64_t client) const = 0;
};

}  // namespace pnfsrdma::mds

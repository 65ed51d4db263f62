// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/compound_context.h"

#include <algorithm>

#include "server/mds/state/counters.h"
#include "server/mds/state/delegations.h"
#include "server/mds/state/grace.h"
#include "shared/base/check.h"
#include "shared/base/log.h"
#include "shared/nfs4/snapshot_list.h"

namespace pnfsrdma::mds {

using nfs4::Status;

void CompoundContext::count(const Activity& more) {
  if (client) client->activity += more;
  if (!current.handle) return;
  services.counters.by_export[current.handle->export_id] += more;
  services.counters.busy_files.add(current.handle->inode, more);
}

Outcome<ObjectHandle> CompoundContext::current_handle() const {
  if (!current.handle) return std::unexpected(Status::kNoFileHandle);
  return *current.handle;
}

Outcome<InodePointer> CompoundContext::current_inode() const {
  TRY_ASSIGN(const ObjectHandle handle, current_handle());
  TRY_ASSIGN(InodePointer inode, services.names.get(handle.inode));
  // Another file has the number: it was made by a later boot of a restored store.
  if (inode->generation != handle.generation) return std::unexpected(Status::kStale);
  if (handle.export_id == Exports::kPseudoId) return pseudo_directory(*inode);
  return inode;
}

InodePointer CompoundContext::pseudo_directory(const Inode& real) const {
  Inode shown;
  shown.id = real.id;
  shown.generation = real.generation;
  shown.type = FileType::kDirectory;
  shown.mode = 0555;
  shown.nlink = 2;
  shown.change = services.exports.version();
  shown.atime = shown.mtime = shown.ctime = shown.created = real.created;
  return std::make_shared<const Inode>(std::move(shown));
}

namespace {
// RFC 8881, 15.1.2.9: WRONG_TYPE is for what has no error of its own.
Outcome<InodePointer> regular(InodePointer inode) {
  if (inode->is_directory()) return std::unexpected(Status::kIsDir);
  if (inode->type == FileType::kSymlink) return std::unexpected(Status::kSymlink);
  if (!inode->is_regular()) return std::unexpected(Status::kWrongType);
  return inode;
}
}  // namespace

Outcome<InodePointer> CompoundContext::current_regular_file() const {
  TRY_ASSIGN(InodePointer inode, current_inode());
  return regular(std::move(inode));
}

Outcome<InodeId> CompoundContext::current_file_to_give_back() const {
  TRY_ASSIGN(const ObjectHandle handle, current_handle());
  if (!current.lapsed) TRY(current_regular_file());
  return handle.inode;
}

Outcome<InodePointer> CompoundContext::saved_object() const {
  if (!saved.handle) return std::unexpected(Status::kNoFileHandle);
  TRY(current_handle());
  TRY_ASSIGN(InodePointer inode, services.names.get(saved.handle->inode));
  if (inode->generation != saved.handle->generation) return std::unexpected(Status::kStale);
  if (saved.handle->export_id != current.handle->export_id) return std::unexpected(Status::kXDev);
  return inode;
}

Outcome<InodePointer> CompoundContext::saved_inode() const {
  TRY_ASSIGN(InodePointer inode, saved_object());
  if (snapshot_of(inode->id) != snapshot_of(current.handle->inode)) return std::unexpected(Status::kXDev);
  return inode;
}

Outcome<InodePointer> CompoundContext::saved_regular_file() const {
  TRY_ASSIGN(InodePointer inode, saved_object());
  return regular(std::move(inode));
}

Outcome<OpenAccess> CompoundContext::saved_io_access(const nfs4::Stateid& stateid, const Inode& inode) {
  // For what "the current stateid" means.
  std::swap(current, saved);
  Outcome<OpenAccess> access = io_access(stateid, inode, false);
  std::swap(current, saved);
  return access;
}

Outcome<InodePointer> CompoundContext::current_directory() const {
  TRY_ASSIGN(InodePointer inode, current_inode());
  if (inode->type == FileType::kSymlink) return std::unexpected(Status::kSymlink);
  if (!inode->is_directory()) return std::unexpected(Status::kNotDir);
  return inode;
}

bool CompoundContext::names_snapshots(InodeId directory, std::string_view name) const {
  return name == nfs4::kSnapshotListName && services.exports.at(directory) == &current_export();
}

bool CompoundContext::hides(InodeId directory, std::string_view name) const {
  return names_snapshots(directory, name) && services.names.snapshots().has_ready();
}

Outcome<InodePointer> CompoundContext::lookup(const Inode& directory, std::string_view name) const {
  if (hides(directory.id, name)) return services.names.get(inode_in(kSnapshotList, directory.id));
  return services.names.lookup(directory.id, name);
}

Outcome<> CompoundContext::check_new_name(const Inode& directory, std::string_view name) const {
  if (names_snapshots(directory.id, name)) return std::unexpected(Status::kExist);
  return {};
}

const Export& CompoundContext::current_export() const {
  CHECK(current.handle.has_value());
  const Export* found = services.exports.find_accepted(current.handle->export_id);
  CHECK(found != nullptr);  // PUTFH has seen to it
  return *found;
}

std::string_view CompoundContext::peer_host() const {
  return host_of(peer);
}

Outcome<> CompoundContext::check_port(const Export& to) {
  if (serves_port(to)) return {};
  Counters::PortRefusals& refused = services.counters.port_refusals[to.id];
  ++refused.calls;
  refused.last = services.clock.now();
  refused.host = peer_host();
  if (refused.calls == 1) {
    log_warning("mds",
                "port-refused export={} peer={} what=\"calls from ports above 1023 are refused unless the "
                "export is insecure (logged once)\"",
                to.path, peer);
  }
  return std::unexpected(Status::kPerm);
}

Outcome<> CompoundContext::check_use(nfs4::Operation operation) const {
  if (!current.lapsed) return {};
  switch (operation) {
    case nfs4::Operation::kClose:
    case nfs4::Operation::kDelegationReturn:
    case nfs4::Operation::kLayoutReturn:
    case nfs4::Operation::kUnlock:
    case nfs4::Operation::kFreeStateid:
    case nfs4::Operation::kTestStateid:
    case nfs4::Operation::kPutFileHandle:
    case nfs4::Operation::kPutPublicFileHandle:
    case nfs4::Operation::kPutRootFileHandle:
    case nfs4::Operation::kRestoreFileHandle:
      return {};
    default:
      return std::unexpected(current.refused);
  }
}

Outcome<> CompoundContext::find_groups() {
  if (!current.handle || managed_groups_ || !current_export().manages_groups_of(caller)) return {};
  if (caller_flavor != static_cast<uint32_t>(rpc::AuthFlavor::kSys)) return {};  // he says not who he is
  TRY_ASSIGN(const UserGroups::Answer answer, suspension.ask<UserGroups::Answer>([this](auto done) {
    services.user_groups.find(caller.uid, std::move(done));
  }));
  if (!answer) return std::unexpected(Status::kDelay);
  managed_groups_ = answer;
  // The handler's own questions are numbered from the first one.
  suspension.next_operation();
  suspension.begin_run();
  return {};
}

Credentials CompoundContext::credentials() const {
  const Export& to = current_export();
  if (!to.manages_groups_of(caller)) return to.squashed(caller);
  Credentials managed{.uid = caller.uid, .gid = caller.gid, .groups = {}};
  if (managed_groups_) managed.groups = *managed_groups_;
  return to.squashed(managed);
}

bool CompoundContext::read_only() const {
  return current_export().read_only || snapshot_of(current.handle->inode) != 0;
}

Outcome<> CompoundContext::check_writable() const {
  if (read_only()) return std::unexpected(Status::kRoFs);
  return {};
}

Outcome<> CompoundContext::check_access(const Inode& inode, uint32_t wanted) const {
  if ((wanted & kMayWrite) != 0) TRY(check_writable());
  const Status status = mds::check_access(requester(), inode, wanted);
  if (status != Status::kOk) return std::unexpected(status);
  return {};
}

// RFC 8881, 16.2.3.1.2: (1, zeros) stands for the stateid the COMPOUND's last operation left.
Outcome<nfs4::Stateid> CompoundContext::resolve(const nfs4::Stateid& stateid) const {
  switch (special_stateid(stateid)) {
    case SpecialStateid::kCurrent:
      if (special_stateid(current.stateid) != SpecialStateid::kNone)
        return std::unexpected(Status::kBadStateid);
      return current.stateid;
    case SpecialStateid::kInvalid:
      return std::unexpected(Status::kBadStateid);
    default:
      return stateid;
  }
}

Outcome<OpenState*> CompoundContext::find_open(const nfs4::Stateid& stateid, InodeId inode) const {
  OpenState* open = services.opens.find(stateid.other);
  if (!open) return std::unexpected(Status::kBadStateid);
  if (open->client != client->id || open->inode != inode) return std::unexpected(Status::kBadStateid);
  const Status status = check_seqid(stateid.seqid, open->seqid);
  if (status != Status::kOk) return std::unexpected(status);
  return open;
}

Outcome<LockState*> CompoundContext::find_lock(const nfs4::Stateid& stateid, InodeId inode) const {
  LockState* lock = services.locks.find(stateid.other);
  if (!lock) return std::unexpected(Status::kBadStateid);
  if (lock->client != client->id || lock->inode != inode) return std::unexpected(Status::kBadStateid);
  const Status status = check_seqid(stateid.seqid, lock->seqid);
  if (status != Status::kOk) return std::unexpected(status);
  return lock;
}

Outcome<DelegationState*> CompoundContext::find_delegation(const nfs4::Stateid& stateid,
                                                           InodeId inode) const {
  DelegationState* held = services.delegations.table().find(stateid.other);
  if (!held || held->client != client->id || held->inode != inode)
    return std::unexpected(Status::kBadStateid);
  if (held->revoked) return std::unexpected(Status::kDelegRevoked);
  const Status status = check_seqid(stateid.seqid, DelegationState::kSeqid);
  if (status != Status::kOk) return std::unexpected(status);
  return held;
}

OpenState& CompoundContext::open_of(const LockState& lock) const {
  OpenState* open = services.opens.find(lock.open);
  CHECK(open != nullptr);
  return *open;
}

// RFC 8881, 9.1.2. An open speaks for itself: the permission was checked when it was made, and a descriptor
// may be passed on to another user.
Outcome<OpenAccess> CompoundContext::io_access(const nfs4::Stateid& asked, const Inode& inode,
                                               bool write) const {
  if (write) TRY(check_writable());
  TRY_ASSIGN(const nfs4::Stateid stateid, resolve(asked));
  if (kind_of(stateid.other) == StateKind::kDelegation) {
    TRY_ASSIGN(const DelegationState* held, find_delegation(stateid, inode.id));
    return OpenAccess{.client = client_id(), .read = true, .write = held->kind == DelegationKind::kWrite};
  }
  if (special_stateid(stateid) == SpecialStateid::kNone) {
    const OpenState* open = nullptr;
    if (kind_of(stateid.other) == StateKind::kLock) {
      TRY_ASSIGN(const LockState* lock, find_lock(stateid, inode.id));
      open = &open_of(*lock);
    } else {
      TRY_ASSIGN(open, find_open(stateid, inode.id));
    }
    OpenAccess access{.client = open->client};
    access.write = (open->access & kShareWrite) != 0;
    // A client fills the rest of a page it writes part of: who may read the file may do so by a write-only
    // open.
    access.read = (open->access & kShareRead) != 0 || check_access(inode, kMayRead).has_value();
    return access;
  }
  // Without an open nobody knows what the reclaims still to come will deny.
  if (in_grace()) return std::unexpected(Status::kGrace);
  TRY(check_access(inode, write ? kMayWrite : kMayRead));
  const bool bypass = special_stateid(stateid) == SpecialStateid::kReadBypass && !write;
  if (!bypass && services.opens.access_denied_by_others(inode.id, write ? kShareWrite : kShareRead)) {
    return std::unexpected(Status::kLocked);
  }
  return OpenAccess{.client = client_id(), .read = !write, .write = write, .special = true};
}

Outcome<> CompoundContext::check_modification(const Inode& inode) const {
  TRY(check_writable());
  if ((services.opens.access_of_client(inode.id, client_id()) & kShareWrite) != 0) return {};
  const DelegationState* held = services.delegations.table().find(inode.id, client_id());
  if (held != nullptr && held->kind == DelegationKind::kWrite) return {};
  if (credentials().uid == inode.uid) return {};
  return check_access(inode, kMayWrite);
}

Batch CompoundContext::done_record(const StateidOther& open) const {
  Batch batch;
  if (!session || !keep_reply) return batch;
  DoneRecords::put(batch, {.session = session->id(),
                           .slot = slot,
                           .seqid = session->slots().at(slot).seqid,
                           .operation = request.index,
                           .request_hash = request.hash,
                           .open = open});
  session->note_change();
  return batch;
}

// RFC 8881, 8.4.2.1: what conflicts with what may be reclaimed waits. A client that is cut off uses it until its lease
// ends.
Outcome<> CompoundContext::recall_delegations(const Inode& inode, FileAct act) {
  if ((inode.is_regular() || inode.is_directory()) && services.grace.waits_for_others(client_owner()))
    return std::unexpected(Status::kGrace);
  return recall_known_delegations(inode, act);
}

Outcome<> CompoundContext::recall_known_delegations(const Inode& inode, FileAct act) {
  if (!inode.is_regular() && !inode.is_directory()) return {};
  struct Begun {
    InodeId inode = kNoInode;
    Delegations::Hold hold;
    bool held_by_others = false;
  };
  Delegations& delegations = services.delegations;
  TRY_ASSIGN(const Begun begun, suspension.once<Begun>([&] {
    return Begun{inode.id, delegations.hold(inode.id, client_id(), act),
                 delegations.table().conflicts(inode.id, client_id(), act)};
  }));
  // While the operation waited, another file has got the name.
  if (begun.inode != inode.id) return std::unexpected(Status::kDelay);
  if (!begun.held_by_others) return {};
  TRY_ASSIGN(const Status recalled, suspension.ask<Status>([&](auto done) {
    delegations.recall(inode.id, client_id(), std::move(done));
  }));
  if (recalled != Status::kOk) return std::unexpected(recalled);
  return {};
}

bool CompoundContext::in_grace() const {
  return services.grace.active();
}

Outcome<> CompoundContext::check_grace(bool reclaim) const {
  GracePeriod& grace = services.grace;
  if (reclaim) {
    if (client->reclaim_complete || !grace.may_reclaim(client->owner)) {
      return std::unexpected(Status::kNoGrace);
    }
    grace.reclaiming();
    return {};
  }
  if (grace.active() || !client->reclaim_complete) return std::unexpected(Status::kGrace);
  return {};
}

}  // namespace pnfsrdma::mds

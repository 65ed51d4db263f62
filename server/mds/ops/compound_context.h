// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/permissions.h"
#include "server/mds/ops/exports.h"
#include "server/mds/ops/file_handle.h"
#include "server/mds/ops/services.h"
#include "server/mds/ops/suspension.h"
#include "server/mds/ops/user_groups.h"
#include "server/mds/state/client.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "server/mds/state/session.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/operation_table.h"
#include "shared/rpc/connection.h"

namespace pnfsrdma::mds {

// A filehandle with the stateid that goes with it: SAVEFH and RESTOREFH carry both (RFC 8881, 16.2.3.1.2).
struct CurrentObject {
  std::optional<ObjectHandle> handle;
  nfs4::Stateid stateid{};  // anonymous: no operation has set one since the filehandle changed
  // The handle is of no use any more, but what a client holds under it can be given back (check_use).
  bool lapsed = false;
  nfs4::Status refused = nfs4::Status::kStale;  // what any other use of it is answered
};

// What an I/O stateid allows on the current file.
struct OpenAccess {
  ClientId client = 0;
  bool read = false;
  bool write = false;
  bool special = false;  // anonymous or READ bypass: no open stands behind it
};

// All that the handler of one operation sees. Lives as long as its COMPOUND; control loop only.
//
// A handler is `Outcome<Result> handle(CompoundContext&, const Arguments&)`. It may return kSuspended after
// asking `suspension`, or because a row of the store is not in memory; it then runs again from the top with
// the same arguments. So it changes the context (current filehandle, stateid) and any state only after its
// last question and its last read.
class CompoundContext {
 public:
  CompoundContext(Services& services, std::function<void()> resume)
      : services(services),
        reads(services.store),
        suspension(reads, std::move(resume)),
        exports_version_(services.exports.version()) {}

  // The server's parts, and how to wait.
  Services& services;
  RequestReads reads;
  Suspension suspension;

  // The call.
  uint32_t minor_version = 0;
  uint32_t caller_flavor = 0;  // RPC authentication flavor
  Credentials caller;          // as it came, before squashing; AUTH_NONE: nobody
  std::string peer;            // rpc::Connection::peer()
  bool high_port = false;      // by TCP from a port that every user may bind
  std::weak_ptr<rpc::Connection> connection;

  CurrentObject current;
  CurrentObject saved;
  // The last two objects whose filehandle a VERIFY has found to be the one that the client expects; the exchange
  // of two names asks for them.
  std::array<InodeId, 2> verified{kNoInode, kNoInode};

  // The COMPOUND as SEQUENCE judges it.
  struct Request {
    uint32_t bytes = 0;       // of the RPC message
    uint32_t operations = 0;  // announced
    uint32_t index = 0;       // of the operation that runs
    uint64_t hash = 0;        // never 0
  } request;

  // Set by SEQUENCE. Client and session may be dropped while an operation waits: the loop then ends the
  // COMPOUND, so a handler never sees one that is gone.
  std::shared_ptr<Client> client;
  std::shared_ptr<Session> session;
  uint32_t slot = 0;
  bool keep_reply = false;                  // sa_cachethis
  bool replay = false;                      // a retry: `kept_reply` goes out again,
  std::shared_ptr<const Bytes> kept_reply;  // or, where that is null, RETRY_UNCACHED_REP
  uint32_t reply_bytes_max = 0;             // for the whole reply; reply_room is what is left of it
  // A request of an earlier run of the daemon, which has done its changes up to the operation of this index:
  // no client, no session, see done_operations.h.
  std::optional<uint32_t> done;
  StateidOther done_open{};  // of the OPEN that has made its file there; zeros: it was another change
  // For the batch of a change that must not be made twice: notes it as done, where the client keeps the
  // reply. `open`: of an OPEN that makes its file.
  Batch done_record(const StateidOther& open = {}) const;
  ClientId client_id() const { return client ? client->id : 0; }
  ByteSpan client_owner() const { return client ? ByteSpan(client->owner) : ByteSpan(); }

  // Bytes this operation's result may still have within ca_maxresponsesize (within ca_maxresponsesize_cached
  // if the reply is to be kept). REP_TOO_BIG or REP_TOO_BIG_TO_CACHE for what does not fit.
  uint32_t reply_room = 0;

  // For those who watch: what has been done for this client, on the current object and its export.
  void count(const Activity& more);

  // --- the current object ---
  // NOFILEHANDLE.
  Outcome<ObjectHandle> current_handle() const;
  // NOFILEHANDLE, STALE. In the pseudo file system a directory of its own, which shows nothing of the real
  // one.
  Outcome<InodePointer> current_inode() const;
  // The same for data: ISDIR, SYMLINK, WRONG_TYPE for what is not a regular file.
  Outcome<InodePointer> current_regular_file() const;
  // The same for what gives back what is held of it: where the handle has lapsed, there need be no such file any more.
  Outcome<InodeId> current_file_to_give_back() const;
  // NOTDIR, SYMLINK for what is not a directory.
  Outcome<InodePointer> current_directory() const;
  // The saved object of LINK, RENAME and CLONE: NOFILEHANDLE, STALE; XDEV if it was reached through another export, or
  // is of another snapshot.
  Outcome<InodePointer> saved_inode() const;
  // The same for data, which COPY may read in any snapshot.
  Outcome<InodePointer> saved_regular_file() const;
  // What everybody may know of a directory that leads to an export.
  InodePointer pseudo_directory(const Inode& real) const;
  // Resets the current stateid, as the RFC says of every operation that changes the filehandle without one.
  void set_current(const ObjectHandle& handle) { current = {handle, {}}; }
  // An inode reached from the current object, through this export.
  ObjectHandle handle_of(const Inode& inode, uint16_t export_id) const {
    return {export_id, inode.id, inode.generation, current.handle->old && snapshot_of(inode.id) == 0};
  }
  ObjectHandle handle_of(const Inode& inode) const { return handle_of(inode, current.handle->export_id); }

  void set_current_stateid(const nfs4::Stateid& stateid) { current.stateid = stateid; }

  // --- names in a directory of the current export ---
  // As people see them: nfs4::kSnapshotListName leads to the snapshots. What Namespace::lookup() says.
  Outcome<InodePointer> lookup(const Inode& directory, std::string_view name) const;
  // The directory may have an entry of that name, which nobody sees while there are snapshots.
  bool hides(InodeId directory, std::string_view name) const;
  // Before something gets a name: EXIST for the one that is not to be had, whether there are snapshots or not.
  Outcome<> check_new_name(const Inode& directory, std::string_view name) const;

  // --- permissions on the current export ---
  const Export& current_export() const;
  // The caller's numeric address, for the export's list of clients.
  std::string_view peer_host() const;
  // exports(5), "secure": PERM, which is counted, where the export wants calls from reserved ports and this
  // one's came from another. The COMPOUND asks for the current export before each operation, but where the handle has
  // lapsed: from wherever, what is held can be given back.
  Outcome<> check_port(const Export& to);
  Outcome<> check_port() {
    return current.handle && !current.lapsed ? check_port(current_export()) : Outcome<>();
  }
  // STALE, or why the export does not let the caller in, for what does more with a lapsed handle than giving back, or
  // going on to another one.
  Outcome<> check_use(nfs4::Operation operation) const;
  bool serves_port(const Export& to) const { return to.insecure || !high_port; }
  // Before an operation that may judge the caller's rights, for exports with manage_gids: asks for his groups,
  // once in a COMPOUND. kSuspended, DELAY.
  Outcome<> find_groups();
  // The caller's identity on it: squashed as it says, in the groups it believes in.
  Credentials credentials() const;
  // The same, with what permissions are judged by.
  Requester requester() const { return {credentials(), services.names}; }
  // Nothing of the current object may be changed: so its export says, or it is of a snapshot.
  bool read_only() const;
  // kMay* bits. ACCESS, and ROFS for writing where all is read_only().
  Outcome<> check_access(const Inode& inode, uint32_t wanted) const;
  Outcome<> check_writable() const;

  // --- stateids ---
  // Replaces the special stateid (1, zeros) by the current one: BAD_STATEID if there is none.
  Outcome<nfs4::Stateid> resolve(const nfs4::Stateid& stateid) const;
  // The open behind a stateid: of this client, on this inode, of this seqid or of none (0). BAD_STATEID,
  // OLD_STATEID, EXPIRED, ADMIN_REVOKED. Not to be kept over a suspension.
  Outcome<OpenState*> find_open(const nfs4::Stateid& stateid, InodeId inode) const;
  // The same of a byte-range lock's.
  Outcome<LockState*> find_lock(const nfs4::Stateid& stateid, InodeId inode) const;
  // The same of a delegation's. DELEG_REVOKED.
  Outcome<DelegationState*> find_delegation(const nfs4::Stateid& stateid, InodeId inode) const;
  // The open a lock grew from. A lock never outlives it.
  OpenState& open_of(const LockState& lock) const;
  // For READ, WRITE, SETATTR(size) and a first LAYOUTGET: the stateid of an open, a lock or a delegation, or a
  // special one with its permissions and the share reservations of others. Does not compare .read and .write
  // with what is asked: OPENMODE is the caller's to say. BAD_STATEID, OLD_STATEID, EXPIRED, DELEG_REVOKED,
  // LOCKED, ACCESS, ROFS, GRACE.
  Outcome<OpenAccess> io_access(const nfs4::Stateid& stateid, const Inode& inode, bool write) const;
  // The same of the saved object, for reading it.
  Outcome<OpenAccess> saved_io_access(const nfs4::Stateid& stateid, const Inode& inode);

  // For COMMIT and LAYOUTCOMMIT, which name no open: the client has the file open for writing (whoever of its
  // users asks, a descriptor may be passed on), or the caller owns it or may write it. ROFS, ACCESS.
  Outcome<> check_modification(const Inode& inode) const;

  // Before an act on a file, or a change of a directory (RFC 8881, 10.4, 10.9): recalls the delegations of others that
  // it conflicts with, and keeps them from getting one until the operation ends. The client's own conflicts with
  // nothing it does: it knows what it changes (Linux's server has it so, too). kSuspended, DELAY.
  Outcome<> recall_delegations(const Inode& inode, FileAct act = FileAct::kChange);
  // The same where the grace period is no matter: of who reclaims, or has looked at it.
  Outcome<> recall_known_delegations(const Inode& inode, FileAct act);

  // Exports have changed since the call came: the handles that it names may have ended, and what others make of the
  // current one now is not what the client knows.
  bool exports_changed() const { return services.exports.version() != exports_version_; }
  // Says later whether they have not; may outlive this.
  std::function<bool()> exports_stay() const {
    return [&exports = services.exports, version = exports_version_] { return exports.version() == version; };
  }

  bool in_grace() const;
  // For an operation that makes or reclaims state (RFC 8881, 8.4.2.1 and 18.51.3): reclaims in grace,
  // everything else after it, and after RECLAIM_COMPLETE. GRACE, NO_GRACE.
  Outcome<> check_grace(bool reclaim) const;

 private:
  bool names_snapshots(InodeId directory, std::string_view name) const;
  // A saved object that was reached through the current export.
  Outcome<InodePointer> saved_object() const;

  const uint64_t exports_version_;
  UserGroups::Answer managed_groups_;  // of the caller, as the name service has them; null: not asked for
};

}  // namespace pnfsrdma::mds

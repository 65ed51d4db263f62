// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>

#include "server/mds/meta/permissions.h"
#include "server/mds/ops/exports.h"
#include "server/mds/ops/file_handle.h"
#include "server/mds/ops/suspension.h"
#include "server/mds/state/client.h"
#include "server/mds/state/open_state.h"
#include "server/mds/state/session.h"
#include "shared/nfs4/types.h"
#include "shared/rpc/connection.h"

namespace pnfsrdma::mds {

struct Services;

// A filehandle with the stateid that goes with it: SAVEFH and RESTOREFH carry both (RFC 8881, 16.2.3.1.2).
struct CurrentObject {
  std::optional<ObjectHandle> handle;
  nfs4::Stateid stateid{};  // anonymous: no operation has set one since the filehandle changed
};

// What an I/O stateid allows on the current file.
struct OpenAccess {
  ClientId client = 0;
  bool read = false;
  bool write = false;
  OpenState* open = nullptr;  // null under a special stateid. Not to be kept over a suspension.
};

// All that the handler of one operation sees. Lives as long as its COMPOUND; control loop only.
//
// A handler is `std::expected<Result, nfs4::Status> handle(CompoundContext&, const Arguments&)`. It may return kSuspended after
// asking `suspension`; it then runs again from the top with the same arguments: so it changes the context (current
// filehandle, stateid) and the state only after its last question.
class CompoundContext {
 public:
  CompoundContext(Services& services, std::function<void()> resume);

  // The server's parts, and how to wait.
  Services& services;
  Suspension suspension;

  // The call.
  uint32_t minor_version = 0;
  rpc::Credential caller;                       // as it came, before squashing
  std::weak_ptr<rpc::Connection> connection;    // empty in tests without a network

  CurrentObject current;
  CurrentObject saved;

  // --- who asks ---
  // The session's client. Only in operations behind SEQUENCE, where it always exists: a client is not dropped while a
  // COMPOUND of it runs.
  Client& client();
  ClientId client_id() const { return client_id_; }
  Session* session();  // null before SEQUENCE
  // The caller's identity on the current object's export, root squashed as the export says.
  Credential credential() const;

  // --- the current object ---
  // NOFILEHANDLE without one. The inode may be stale: inode() checks.
  std::expected<ObjectHandle, nfs4::Status> current_handle() const;
  // The current object's inode record. NOFILEHANDLE, STALE.
  std::expected<Inode, nfs4::Status> current_inode() const;
  // The same, which must be a regular file: ISDIR, SYMLINK or WRONG_TYPE (RFC 8881, 15.1.2.9).
  std::expected<Inode, nfs4::Status> current_regular_file() const;
  void set_current(const ObjectHandle& handle);            // resets the current stateid
  void set_current_stateid(const nfs4::Stateid& stateid) { current.stateid = stateid; }
  // Replaces the special stateid (1, 0) by the current one: BAD_STATEID if there is none.
  std::expected<nfs4::Stateid, nfs4::Status> resolve(const nfs4::Stateid& stateid) const;

  // --- permissions and stateids for I/O on the current file ---
  // POSIX permissions of credential(), the export's read_only and, for the owner of an open file, nothing else.
  // ACCESS, ROFS.
  std::expected<void, nfs4::Status> check_access(const Inode& inode, bool read, bool write, bool execute) const;
  // READ, WRITE, SETATTR(size), LAYOUTGET's first: resolves (1,0), checks an open stateid (its client, file, seqid) or, for a
  // special one, permissions and the share reservations of others. Does not check the mode asked for: look at .read and .write
  // (OPENMODE). BAD_STATEID, OLD_STATEID, EXPIRED, LOCKED, ACCESS, GRACE.
  std::expected<OpenAccess, nfs4::Status> io_access(const nfs4::Stateid& stateid, const Inode& inode, bool write);
  // ROFS on a read-only export.
  std::expected<void, nfs4::Status> check_writable_export() const;

  bool in_grace() const;
  // Bytes this operation's result may still have within ca_maxresponsesize (and …_cached, if the reply is to be cached).
  uint32_t reply_room() const { return reply_room_; }

 private:
  friend class Compound;
  ClientId client_id_ = 0;
  SessionId session_id_{};
  uint32_t reply_room_ = 0;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

namespace pnfsrdma::nfs4 {

// nfs_lock_type4; the waiting ones ask the server to keep the place in the queue.
enum class LockType : uint32_t { kRead = 1, kWrite = 2, kReadWait = 3, kWriteWait = 4 };
constexpr bool xdr_known(LockType type) {
  return type >= LockType::kRead && type <= LockType::kWriteWait;
}

// locker4: the first lock of an owner names the open it grows from, later ones the lock stateid. On the wire
// the discriminant is a bool, new_lock_owner.
enum class Locker : uint32_t { kExistingOwner = 0, kNewOwner = 1 };
constexpr bool xdr_known(Locker locker) {
  return locker <= Locker::kNewOwner;
}
struct OpenToLockOwner {
  uint32_t open_seqid = 0;
  Stateid open_stateid;
  uint32_t lock_seqid = 0;
  StateOwner lock_owner;
};
struct ExistingLockOwner {
  Stateid lock_stateid;
  uint32_t lock_seqid = 0;
};
using LockOwner = xdr::Union<Locker, xdr::Arm<ExistingLockOwner, Locker::kExistingOwner>,
                             xdr::Arm<OpenToLockOwner, Locker::kNewOwner>>;

// LOCK (RFC 8881, 18.10). NFS4ERR_DENIED says whose lock is in the way.
struct LockArguments {
  LockType type = LockType::kRead;
  bool reclaim = false;
  uint64_t offset = 0;
  uint64_t length = 0;
  LockOwner locker;
};
struct LockDenied {
  uint64_t offset = 0;
  uint64_t length = 0;
  LockType type = LockType::kRead;
  StateOwner owner;
};
struct LockResult {
  Stateid lock_stateid;
};
using LockResponse = Response<LockResult, Status::kDenied, LockDenied>;

// LOCKT (18.11)
struct LockTestArguments {
  LockType type = LockType::kRead;
  uint64_t offset = 0;
  uint64_t length = 0;
  StateOwner owner;
};
struct LockTestResult {};
using LockTestResponse = Response<LockTestResult, Status::kDenied, LockDenied>;

// LOCKU (18.12)
struct UnlockArguments {
  LockType type = LockType::kRead;
  uint32_t seqid = 0;
  Stateid lock_stateid;
  uint64_t offset = 0;
  uint64_t length = 0;
};
struct UnlockResult {
  Stateid lock_stateid;
};
using UnlockResponse = Response<UnlockResult>;

}  // namespace pnfsrdma::nfs4

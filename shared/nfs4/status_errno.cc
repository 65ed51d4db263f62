// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/status_errno.h"

#include <cerrno>

namespace pnfsrdma::nfs4 {

int to_errno(Status status) {
  switch (status) {
    case Status::kOk:
      return 0;
    case Status::kPerm:
      return EPERM;
    case Status::kNoEnt:
      return ENOENT;
    case Status::kIo:
      return EIO;
    case Status::kNxIo:
      return ENXIO;
    case Status::kAccess:
    case Status::kWrongSec:
      return EACCES;
    case Status::kExist:
      return EEXIST;
    case Status::kXDev:
      return EXDEV;
    case Status::kNotDir:
      return ENOTDIR;
    case Status::kIsDir:
      return EISDIR;
    case Status::kInval:
    case Status::kBadName:
    case Status::kBadChar:
    case Status::kBadOwner:
    case Status::kBadType:
    case Status::kBadRange:
      return EINVAL;
    case Status::kFBig:
      return EFBIG;
    case Status::kNoSpc:
      return ENOSPC;
    case Status::kRoFs:
      return EROFS;
    case Status::kMLink:
      return EMLINK;
    case Status::kNameTooLong:
      return ENAMETOOLONG;
    case Status::kNotEmpty:
      return ENOTEMPTY;
    case Status::kDQuot:
      return EDQUOT;
    case Status::kSymlink:
      return ELOOP;
    case Status::kNoXattr:
      return ENODATA;
    case Status::kXattr2Big:
      return E2BIG;
    case Status::kWrongType:
      return EINVAL;
    case Status::kOpenMode:
      return EBADF;
    case Status::kDeadlock:
      return EDEADLK;
    case Status::kStale:
    case Status::kBadHandle:
    case Status::kFhExpired:
    case Status::kStaleStateid:
    case Status::kStaleClientId:
    case Status::kExpired:
    case Status::kAdminRevoked:
    case Status::kDelegRevoked:
      return ESTALE;
    case Status::kDelay:
    case Status::kGrace:
    case Status::kDenied:
    case Status::kLocked:
    case Status::kLayoutTryLater:
    case Status::kRecallConflict:
      return EAGAIN;
    case Status::kShareDenied:
    case Status::kFileOpen:
    case Status::kLocksHeld:
      return EBUSY;
    case Status::kNotSupp:
    case Status::kAttrNotSupp:
    case Status::kOpIllegal:
    case Status::kUnionNotSupp:
    case Status::kLockNotSupp:
      return EOPNOTSUPP;
    case Status::kResource:
    case Status::kTooManyOps:
      return ENOMEM;
    default:
      return EIO;
  }
}

Status from_errno(int number) {
  switch (number) {
    case 0:
      return Status::kOk;
    case EPERM:
      return Status::kPerm;
    case ENOENT:
      return Status::kNoEnt;
    case EIO:
      return Status::kIo;
    case ENXIO:
      return Status::kNxIo;
    case EACCES:
      return Status::kAccess;
    case EEXIST:
      return Status::kExist;
    case EXDEV:
      return Status::kXDev;
    case ENOTDIR:
      return Status::kNotDir;
    case EISDIR:
      return Status::kIsDir;
    case EINVAL:
      return Status::kInval;
    case EFBIG:
      return Status::kFBig;
    case ENOSPC:
      return Status::kNoSpc;
    case EROFS:
      return Status::kRoFs;
    case EMLINK:
      return Status::kMLink;
    case ENAMETOOLONG:
      return Status::kNameTooLong;
    case ENOTEMPTY:
      return Status::kNotEmpty;
    case EDQUOT:
      return Status::kDQuot;
    case ESTALE:
      return Status::kStale;
    case EAGAIN:
    case ETIMEDOUT:
    case EBUSY:
      return Status::kDelay;
    case EOPNOTSUPP:
      return Status::kNotSupp;
    case ELOOP:
      return Status::kSymlink;
    case ENODATA:
      return Status::kNoXattr;
    case E2BIG:
      return Status::kXattr2Big;
    case EDEADLK:
      return Status::kDeadlock;
    case EBADF:
      return Status::kOpenMode;
    case ENOMEM:
      return Status::kResource;
    default:
      return Status::kServerFault;
  }
}

}  // namespace pnfsrdma::nfs4

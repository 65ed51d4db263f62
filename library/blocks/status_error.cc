// SPDX-License-Identifier: Apache-2.0
#include "library/blocks/status_error.h"

#include <cerrno>

namespace pnfsrdma::library::blocks {
namespace {

Error without_call(brick::blocks::Status status) {
  using enum brick::blocks::Status;
  switch (status) {
    case kExists:
      return {EEXIST, "blocks of these addresses are there already"};
    case kNotFound:
      return {ENOENT, "not all of these blocks are allocated"};
    case kNoSpace:
      return {ENOSPC, "the partition has not so many free blocks"};
    case kQuota:
      return {EDQUOT, "the partition may not have so many blocks allocated"};
    case kConflict:
      return {EBUSY, "somebody has a part of it mapped in a way that excludes this"};
    case kRevoked:
      return {ESTALE, "the blocks were taken back (unmap, free), or others may have had them meanwhile"};
    case kInvalid:
      return {EINVAL, "an address that is no multiple of the block size, or a number that is out of range"};
    case kLimit:
      return {ENFILE, "attachments, mappings or registrations of the brick are used up"};
    case kIo:
      return {EIO, "the medium or the device failed; the log of the brick says what"};
    case kTryLater:
      return {EAGAIN, "the blocks are not zeroed yet, or are being taken back"};
    case kUnknown:
      return {ESTALE, "the brick does not know this process any more"};
    case kReadOnly:
      return {EBADF, "the mapping is not for writing"};
    case kOk:
      break;
  }
  return {EIO, "an unknown status"};
}

}  // namespace

Error to_error(brick::blocks::Status status, std::string_view what) {
  return without_call(status).in(what);
}

}  // namespace pnfsrdma::library::blocks

// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "fuse-client/file_system.h"
#include "shared/nfs4/status_errno.h"

// Memory for a range of a file, a hole instead of one, and where either is: one call each (RFC 7862: ALLOCATE,
// DEALLOCATE, SEEK), behind a LAYOUTCOMMIT or COMMIT of what was written here. The server recalls the layouts that are
// in the way, ours too.
namespace pnfsrdma::fuse_client {

using initiator::CompoundReply;

namespace {

// An open may die while we speak of it.
constexpr int kRangeTries = 3;
// Others may change the size meanwhile.
constexpr int kSizeTries = 10;

// EOPNOTSUPP for what no server can be asked for.
int check_mode(int mode, uint64_t end, uint64_t size) {
  switch (mode) {
    case 0:
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
    case FALLOC_FL_ZERO_RANGE:
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return 0;
    // Behind its end a file keeps no memory.
    case FALLOC_FL_KEEP_SIZE:
      return end <= size ? 0 : EOPNOTSUPP;
    default:
      return EOPNOTSUPP;
  }
}

}  // namespace

void FileSystem::fallocate(fuse_req_t request, fuse_ino_t node, int mode, uint64_t offset, uint64_t length,
                           fuse_file_info* info) {
  OpenFile& file = open_file(info);
  file.inode->data_changes();
  int error = file.inode->locks().any_lost() ? EIO : clear_privileges(request, node);
  // What is kept here must never be written again over the hole.
  if (error == 0) {
    if (const Result<> committed = file.data->hand_over(); !committed) error = to_number(committed.error());
  }
  int lost = 0;
  int resized = 0;
  while (error == 0) {
    if (const int refused = check_mode(mode, offset + length, file.data->size()); refused != 0) {
      // Another host may have made it longer.
      error = mode == FALLOC_FL_KEEP_SIZE && resized++ == 0 ? ask_end(request, file) : refused;
      continue;
    }
    nfs4::Status status = nfs4::Status::kOk;
    error = change_range(request, *file.inode, mode, {offset, length}, status);
    if (error != 0 || status == nfs4::Status::kOk) break;
    if (status == nfs4::Status::kNotSame) {
      error = ++resized < kSizeTries ? ask_end(request, file) : EAGAIN;
    } else if (!initiator::is_lost_state(status) || ++lost == kRangeTries) {
      error = nfs4::to_errno(status);
    }
  }
  // Else the answer has brought its attributes.
  if (error != 0) file.inode->expire();
  fuse_reply_err(request, error);
}

// One try. Returns an errno when there was no answer, else 0; then `status` tells what it was.
int FileSystem::change_range(fuse_req_t request, Inode& file, int mode, initiator::FileRange range,
                             nfs4::Status& status) {
  const auto open = file.open_state(true);
  const nfs4::Stateid stateid = open ? open->stateid : nfs4::Stateid{};
  Operations operations = {nfs4::PutFileHandleArguments{file.handle}};
  const bool zeroes = (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0;
  if (zeroes) operations.emplace_back(nfs4::DeallocateArguments{stateid, range.offset, range.length});
  const uint64_t size = file.data()->size();
  uint64_t end = range.end();
  if ((mode & FALLOC_FL_KEEP_SIZE) != 0) end = std::min(end, size);
  if ((mode & FALLOC_FL_PUNCH_HOLE) == 0 && range.offset < end) {
    // ALLOCATE makes a file as long as its range, and another host may have cut it.
    if ((mode & FALLOC_FL_KEEP_SIZE) != 0) {
      nfs4::VerifyArguments as_believed;
      as_believed.attributes.size = size;
      operations.emplace_back(std::move(as_believed));
    }
    operations.emplace_back(nfs4::AllocateArguments{stateid, range.offset, end - range.offset});
  }
  const size_t attributes_at = operations.size();
  operations.emplace_back(nfs4::GetAttributesArguments{client::stat_attributes()});

  const Question question = ask(&file);
  const auto answer = parts_.session.call(std::move(operations), credential(request), {.cache_reply = true});
  if (!answer) return error_of(answer);
  status = answer->status;
  const bool lost = initiator::is_lost_state(status);
  if (const auto now = file.open_state(true); lost && now && now->stateid.other == stateid.other)
    parts_.session.renew_opens();
  const auto* result = answer->result<nfs4::GetAttributesResponse>(attributes_at);
  if (result == nullptr) return status == nfs4::Status::kOk ? EIO : 0;
  if (const auto attributes = client::to_file_attributes(result->attributes))
    (void)take_in(file, question, *attributes);
  return 0;
}

void FileSystem::lseek(fuse_req_t request, uint64_t offset, int whence, fuse_file_info* info) {
  const OpenFile& file = open_file(info);
  if (whence != SEEK_DATA && whence != SEEK_HOLE) {
    fuse_reply_err(request, EINVAL);
    return;
  }
  // For this the kernel does not write back what a shared mapping has changed, and who may have one has the file open
  // for writing: then all of it counts as data, as POSIX allows.
  if (file.inode->has_writers()) {
    const uint64_t size = file.data->size();
    if (offset >= size) {
      fuse_reply_err(request, ENXIO);
    } else {
      fuse_reply_lseek(request, static_cast<off_t>(whence == SEEK_DATA ? offset : size));
    }
    return;
  }
  if (const Result<> settled = file.data->settle(); !settled) {
    fuse_reply_err(request, to_number(settled.error()));
    return;
  }
  const auto open = file.inode->open_state(false);
  const auto what = whence == SEEK_DATA ? nfs4::ContentType::kData : nfs4::ContentType::kHole;
  CompoundReply reply;
  const int error = call(request,
                         {nfs4::PutFileHandleArguments{file.inode->handle},
                          nfs4::SeekArguments{open ? open->stateid : nfs4::Stateid{}, offset, what}},
                         reply);
  const auto* found = reply.result<nfs4::SeekResponse>(1);
  if (error != 0 || found == nullptr) {
    // ENOSYS: the kernel takes each file for one stretch of data from then on.
    fuse_reply_err(request, error == EOPNOTSUPP || error == ENOTSUP ? ENOSYS : error != 0 ? error : EIO);
    return;
  }
  if (whence == SEEK_DATA && found->end_of_file) {
    fuse_reply_err(request, ENXIO);
    return;
  }
  fuse_reply_lseek(request, static_cast<off_t>(found->offset));
}

}  // namespace pnfsrdma::fuse_client

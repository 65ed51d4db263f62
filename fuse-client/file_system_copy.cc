// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "fuse-client/file_system.h"
#include "shared/nfs4/status_errno.h"

// copy_file_range(2) by the server, none of the bytes pass through here. CLONE (RFC 7862) where whole pages are copied:
// at once, whatever the length. Else COPY, one call for up to what the server copies at once.
namespace pnfsrdma::fuse_client {

namespace {

// An open may die while we speak of it.
constexpr int kCopyTries = 3;

// Of what servers share between files.
constexpr uint64_t kCloneUnit = 4096;

// The kernel copies by reading and writing, as it does where a file system cannot: a server without COPY, a source that
// somebody else has cut meanwhile.
int errno_of(nfs4::Status status) {
  return status == nfs4::Status::kNotSupp || status == nfs4::Status::kInval ? EOPNOTSUPP
                                                                            : nfs4::to_errno(status);
}

int number_of(const Result<>& result) {
  return result ? 0 : to_number(result.error());
}

// A clone is durable at once, and what we write again because a brick has lost it would go to the one file only.
// 0 or an errno.
int flush_for_clone(initiator::FileIo& source) {
  initiator::ErrorCursor losses = source.losses_from_now();
  return number_of(source.fdatasync(losses));
}

// A server that cannot, or a range that it cannot share, which it knows better: it may copy that.
bool clone_refused(nfs4::Status status) {
  return status == nfs4::Status::kNotSupp || status == nfs4::Status::kInval ||
         status == nfs4::Status::kFBig || status == nfs4::Status::kXDev;
}

}  // namespace

struct FileSystem::Copying {
  Inode& source;
  Inode& target;
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t count = 0;
  bool clones = false;
  bool falls_back = true;  // to a copy, where it cannot be cloned
  uint64_t copied = 0;

  bool of_whole_pages(uint64_t source_size) const {
    if ((source_offset | target_offset) % kCloneUnit != 0) return false;
    return count % kCloneUnit == 0 || source_offset + count == source_size;
  }
};

void FileSystem::copy_file_range(fuse_req_t request, fuse_file_info* from, uint64_t source_offset,
                                 fuse_ino_t target_node, fuse_file_info* to, uint64_t target_offset,
                                 size_t count) {
  const OpenFile& source = open_file(from);
  const OpenFile& target = open_file(to);
  Copying copying{.source = *source.inode,
                  .target = *target.inode,
                  .source_offset = source_offset,
                  .target_offset = target_offset,
                  .count = count};
  int error = prepare_copy(request, *source.inode, *source.data, target_node, target);
  if (error == 0) {
    copying.clones = server_clones_ && copying.of_whole_pages(source.data->size());
    if (copying.clones) error = flush_for_clone(*source.data);
  }
  if (error == 0) error = copy(request, copying);
  if (error == 0) {
    fuse_reply_write(request, copying.copied);
    return;
  }
  // Some of it may be there.
  target.inode->expire();
  fuse_reply_err(request, error);
}

// 0 or an errno.
int FileSystem::prepare_copy(fuse_req_t request, Inode& source, initiator::FileIo& source_data,
                             fuse_ino_t target_node, const OpenFile& target) {
  target.inode->data_changes();
  if (source.locks().any_lost() || target.inode->locks().any_lost()) return EIO;
  if (const int error = clear_privileges(request, target_node); error != 0) return error;
  // The server copies up to the end that it knows.
  if (const int error = number_of(source_data.settle()); error != 0) return error;
  // What is kept here must never be written again over the copy.
  return number_of(target.data->hand_over());
}

int FileSystem::copy(fuse_req_t request, Copying& copying) {
  for (int tries = 1;; ++tries) {
    nfs4::Status status = nfs4::Status::kOk;
    const int error = copy_once(request, copying, status);
    if (error != 0 || status == nfs4::Status::kOk) return error;
    if (copying.clones && copying.falls_back && clone_refused(status)) {
      if (status == nfs4::Status::kNotSupp) server_clones_ = false;
      copying.clones = false;
      continue;
    }
    if (!copying.falls_back && status == nfs4::Status::kInval) return EINVAL;
    if (!initiator::is_lost_state(status) || tries >= kCopyTries) return errno_of(status);
  }
}

// One try. Returns an errno when there was no answer, else 0; then `status` tells what it was.
int FileSystem::copy_once(fuse_req_t request, Copying& copying, nfs4::Status& status) {
  const auto reading = copying.source.open_state(false);
  const auto writing = copying.target.open_state(true);
  nfs4::CopyArguments copy{.source_offset = copying.source_offset,
                           .target_offset = copying.target_offset,
                           .count = copying.count,
                           .consecutive = true,
                           .synchronous = true};
  if (reading) copy.source_stateid = reading->stateid;
  if (writing) copy.target_stateid = writing->stateid;
  initiator::Session::Operations operations{nfs4::PutFileHandleArguments{copying.source.handle},
                                            nfs4::SaveFileHandleArguments{},
                                            nfs4::PutFileHandleArguments{copying.target.handle}};
  if (copying.clones) {
    operations.emplace_back(nfs4::CloneArguments{copy.source_stateid, copy.target_stateid, copy.source_offset,
                                                 copy.target_offset, copy.count});
  } else {
    operations.emplace_back(copy);
  }
  operations.emplace_back(nfs4::GetAttributesArguments{client::stat_attributes()});
  const Question question = ask(&copying.target);
  const auto answer = parts_.session.call(std::move(operations), credential(request), {.cache_reply = true});
  if (!answer) return error_of(answer);
  status = answer->status;
  const auto same = [](const auto& before, const auto& now) {
    return before && now && before->stateid.other == now->stateid.other;
  };
  if (initiator::is_lost_state(status) && same(reading, copying.source.open_state(false)) &&
      same(writing, copying.target.open_state(true)))
    parts_.session.renew_opens();
  const auto* result = answer->result<nfs4::GetAttributesResponse>(4);
  if (!answer->succeeded(3) || result == nullptr) return status == nfs4::Status::kOk ? EIO : 0;
  copying.copied = copying.count;
  if (const auto* done = answer->result<nfs4::CopyResponse>(3)) {
    // Less than durable, as some servers answer: nothing is kept here to be sent again, so the kernel copies it anew.
    if (done->outcome.callback_id || done->outcome.committed != nfs4::StableHow::kFileSync) return EOPNOTSUPP;
    copying.copied = done->outcome.count;
  }
  if (const auto attributes = client::to_file_attributes(result->attributes))
    (void)take_in(copying.target, question, *attributes);
  return 0;
}

// --- by ioctl(2): all of a file or nothing, whatever its size (copy_file_range(2) ends at 2 GiB)

void FileSystem::offer_clone(fuse_req_t request, ByteSpan in, fuse_file_info* info) {
  const auto argument = ring::argument_of<ring::OfferClone>(in);
  const OpenFile& file = open_file(info);
  const auto refuse = [&](int error) { fuse_reply_err(request, error); };
  if (!argument) return refuse(EINVAL);
  if (!file.readable) return refuse(EBADF);
  // The newest bytes may be the kernel's.
  if (parts_.options.writeback) return refuse(ENOTSUP);
  const auto secret = clone_offers_.enter(file.inode, fuse_req_ctx(request)->uid);
  if (!secret) return refuse(to_number(secret.error()));
  const ring::OfferClone answer{.secret = *secret};
  fuse_reply_ioctl(request, 0, &answer, sizeof answer);
}

void FileSystem::clone(fuse_req_t request, fuse_ino_t node, ByteSpan in, fuse_file_info* info) {
  const auto argument = ring::argument_of<ring::Clone>(in);
  const OpenFile& target = open_file(info);
  const auto refuse = [&](int error) { fuse_reply_err(request, error); };
  if (!argument) return refuse(EINVAL);
  if (!target.writable || target.append) return refuse(EBADF);
  if (parts_.options.writeback) return refuse(ENOTSUP);
  const auto source = clone_offers_.take(argument->secret);
  const auto data = source ? source->data() : nullptr;
  if (!data) return refuse(EPERM);
  Copying copying{.source = *source, .target = *target.inode, .clones = true, .falls_back = false};
  int error = prepare_copy(request, *source, *data, node, target);
  if (error == 0) error = flush_for_clone(*data);
  if (error == 0) error = copy(request, copying);
  if (error != 0) target.inode->expire();
  // Neither of the new bytes nor of the new end has the kernel heard.
  parts_.invalidator.pages(node, [request, answer = *argument, error] {
    if (error != 0) {
      fuse_reply_err(request, error);
    } else {
      fuse_reply_ioctl(request, 0, &answer, sizeof answer);
    }
  });
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "fuse-client/file_system.h"
#include "shared/nfs4/status_errno.h"

// copy_file_range(2) by the server (RFC 7862: COPY): one call for up to what the server copies at once, and none of the
// bytes pass through here.
namespace pnfsrdma::fuse_client {

namespace {

// An open may die while we speak of it.
constexpr int kTries = 3;

// The kernel copies by reading and writing, as it does where a file system cannot: a server without COPY, a source that
// somebody else has cut meanwhile.
int errno_of(nfs4::Status status) {
  return status == nfs4::Status::kNotSupp || status == nfs4::Status::kInval ? EOPNOTSUPP
                                                                            : nfs4::to_errno(status);
}

int number_of(const Result<>& result) {
  return result ? 0 : to_number(result.error());
}

}  // namespace

void FileSystem::copy_file_range(fuse_req_t request, fuse_file_info* from, uint64_t source_offset,
                                 fuse_ino_t target_node, fuse_file_info* to, uint64_t target_offset,
                                 size_t count) {
  const OpenFile& source = open_file(from);
  const OpenFile& target = open_file(to);
  target.inode->data_changes();
  int error = source.inode->locks().any_lost() || target.inode->locks().any_lost() ? EIO : 0;
  if (error == 0) error = clear_privileges(request, target_node);
  // The server copies up to the end that it knows.
  if (error == 0) error = number_of(source.data->settle());
  // What is kept here must never be written again over the copy.
  if (error == 0) error = number_of(target.data->hand_over());
  uint64_t copied = 0;
  for (int tries = 1; error == 0; ++tries) {
    nfs4::Status status = nfs4::Status::kOk;
    const nfs4::CopyArguments copy{
        .source_offset = source_offset, .target_offset = target_offset, .count = count};
    error = copy_once(request, *source.inode, *target.inode, copy, copied, status);
    if (error != 0 || status == nfs4::Status::kOk) break;
    if (!initiator::is_lost_state(status) || tries == kTries) error = errno_of(status);
  }
  if (error == 0) {
    fuse_reply_write(request, copied);
    return;
  }
  // Some of it may be there.
  target.inode->expire();
  fuse_reply_err(request, error);
}

// One try. Returns an errno when there was no answer, else 0; then `status` tells what it was.
int FileSystem::copy_once(fuse_req_t request, Inode& source, Inode& target, nfs4::CopyArguments copy,
                          uint64_t& copied, nfs4::Status& status) {
  const auto reading = source.open_state(false);
  const auto writing = target.open_state(true);
  if (reading) copy.source_stateid = reading->stateid;
  if (writing) copy.target_stateid = writing->stateid;
  copy.consecutive = copy.synchronous = true;
  const Question question = ask(&target);
  const auto answer =
      parts_.session.call({nfs4::PutFileHandleArguments{source.handle}, nfs4::SaveFileHandleArguments{},
                           nfs4::PutFileHandleArguments{target.handle}, copy,
                           nfs4::GetAttributesArguments{client::stat_attributes()}},
                          credential(request), {.cache_reply = true});
  if (!answer) return error_of(answer);
  status = answer->status;
  const auto same = [](const auto& before, const auto& now) {
    return before && now && before->stateid.other == now->stateid.other;
  };
  if (initiator::is_lost_state(status) && same(reading, source.open_state(false)) &&
      same(writing, target.open_state(true)))
    parts_.session.renew_opens();
  const auto* done = answer->result<nfs4::CopyResponse>(3);
  const auto* result = answer->result<nfs4::GetAttributesResponse>(4);
  if (done == nullptr || result == nullptr) return status == nfs4::Status::kOk ? EIO : 0;
  // Less than durable, as some servers answer: nothing is kept here to be sent again, so the kernel copies it anew.
  if (done->outcome.callback_id || done->outcome.committed != nfs4::StableHow::kFileSync) return EOPNOTSUPP;
  copied = done->outcome.count;
  if (const auto attributes = client::to_file_attributes(result->attributes))
    (void)take_in(target, question, *attributes);
  return 0;
}

}  // namespace pnfsrdma::fuse_client

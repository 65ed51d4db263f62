// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fuse-client/file_system.h"
#include "fuse-client/worker_buffer.h"
#include "shared/base/check.h"
#include "shared/nfs4/status_errno.h"

// read, write, flush, fsync. Per request: one read(2) of /dev/fuse by the loop, what the data path does
// (under a layout one send and one receive), one writev(2) of the reply. No copy in user space, no
// allocation, no other thread.
namespace pnfsrdma::fuse_client {
namespace {

// Where the bytes of a WRITE are in the worker's buffer; copied there if libfuse has them somewhere else.
initiator::BufferSlice slice_of(initiator::Buffer& buffer, const char* data, size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  if (bytes >= buffer.data() && bytes < buffer.data() + buffer.size()) {
    return buffer.slice(static_cast<size_t>(bytes - buffer.data()), size);
  }
  std::memcpy(buffer.data(), data, size);
  return buffer.slice(0, size);
}

// A read or write through the kernel's pages names no lock owner.
void note_pages(Inode& inode, const fuse_file_info* info) {
  if (info->lock_owner == 0) inode.pages_filled();
}

// Whoever opens the file next asks the server, and looks the path up again: also where a delegation, which is about to
// be recalled, would let him open it without.
void note_end_of_handle(Inode& inode, const Error& error) {
  if (error.number() == ESTALE) inode.expire();
}

}  // namespace

void FileSystem::read(fuse_req_t request, size_t size, off_t offset, fuse_file_info* info) {
  initiator::Buffer* const buffer = WorkerBuffer::current();
  CHECK(buffer != nullptr);
  OpenFile& file = open_file(info);
  note_pages(*file.inode, info);
  if (file.inode->locks().any_lost()) {
    fuse_reply_err(request, EIO);
    return;
  }
  const initiator::BufferSlice sink =
      buffer->slice(initiator::kBufferHeaderRoom, std::min(size, initiator::kBufferPayload));
  if (const auto first = read_with_open(file, static_cast<uint64_t>(offset), sink.bytes())) {
    fuse_reply_buf(request, reinterpret_cast<const char*>(sink.data()), *first);
    return;
  }
  Result<size_t> count = file.data->read(static_cast<uint64_t>(offset), sink);
  // Of buffered reads the kernel asks for the size itself.
  if (count && *count < sink.size() && is_direct(info)) count = read_on(request, file, offset, sink, *count);
  if (!count) {
    note_end_of_handle(*file.inode, count.error());
    fuse_reply_err(request, to_number(count.error()));
    return;
  }
  // Another host has cut the file: the kernel reads into its pages what it takes for a part of it, and would take
  // the place where nothing was found for the end. So its question is overtaken, and it asks for the size.
  if (*count == 0 && offset > 0 && !is_direct(info)) {
    file.inode->expire();
    parts_.invalidator.attributes(file.inode->node);
  }
  fuse_reply_buf(request, reinterpret_cast<const char*>(sink.data()), *count);
}

// Bytes that came with the OPEN. None: there are none, or they are old.
std::optional<size_t> FileSystem::read_with_open(const OpenFile& file, uint64_t offset,
                                                 MutableByteSpan sink) {
  if (!file.first_bytes) return std::nullopt;
  if (!file.inode->is_as_read(*file.first_bytes, parts_.clock.now(), parts_.options.attributes))
    return std::nullopt;
  const auto count = file.first_bytes->copy(offset, sink);
  if (count) file.data->count_read(*count);
  return count;
}

void FileSystem::write(fuse_req_t request, fuse_ino_t node, const char* bytes, size_t size, off_t offset,
                       fuse_file_info* info) {
  initiator::Buffer* const buffer = WorkerBuffer::current();
  CHECK(buffer != nullptr && size <= buffer->size());
  OpenFile& file = open_file(info);
  note_pages(*file.inode, info);
  if (file.inode->locks().any_lost()) {
    fuse_reply_err(request, EIO);
    return;
  }
  const initiator::BufferSlice source = slice_of(*buffer, bytes, size);
  file.inode->data_changes();
  if (const int error = clear_privileges(request, node); error != 0) {
    fuse_reply_err(request, error);
    return;
  }
  initiator::ErrorCursor losses = file.data->losses_from_now();
  // O_SYNC, O_DSYNC, RWF_DSYNC: the flush goes out with the WRITE. O_DIRECT: nothing is kept on this host.
  const auto stability = (info->flags & O_DSYNC) != 0 ? initiator::Stability::kDataSync
                         : is_direct(info)            ? initiator::Stability::kUnstable
                                                      : initiator::Stability::kMayBeHeld;
  // What the kernel writes back of a shared mapping has its place, however the file was opened.
  if (file.append && !parts_.options.writeback && !info->writepage) {
    const auto at = append(request, file, source, stability);
    if (!at) {
      fuse_reply_err(request, at.error());
      return;
    }
    // The kernel put its pages where it believed the end to be.
    if (*at != static_cast<uint64_t>(offset)) parts_.invalidator.pages(node);
    reply_written(request, file, info, size, losses);
    return;
  }
  // The kernel has put zeros between the end it knew and here; another host may have appended there.
  if (static_cast<uint64_t>(offset) > file.data->size()) file.inode->doubt_pages();
  const Result<size_t> count = file.data->write(static_cast<uint64_t>(offset), source, stability);
  if (!count) return reply_lost(request, file, count.error());
  reply_written(request, file, info, *count, losses);
}

std::expected<uint64_t, int> FileSystem::append(fuse_req_t request, OpenFile& file,
                                                initiator::BufferSlice source,
                                                initiator::Stability stability) {
  Result<std::optional<uint64_t>> at = file.data->append_unasked(source, stability);
  if (at && !*at) {
    if (const int error = ask_end(request, file); error != 0) return std::unexpected(error);
    at = file.data->append(source, stability);
  }
  if (at) return **at;
  file.inode->doubt_pages();
  return std::unexpected(to_number(at.error()));
}

bool FileSystem::is_direct(const fuse_file_info* info) const {
  return (info->flags & O_DIRECT) != 0 || parts_.options.direct_only;
}

// A read that ended at the end of the file as known here: another client may have written behind it. One
// call.
Result<size_t> FileSystem::read_on(fuse_req_t request, OpenFile& file, off_t offset,
                                   initiator::BufferSlice sink, size_t done) {
  const uint64_t end = file.data->size();
  if (ask_end(request, file) != 0 || file.data->size() <= end) return done;
  TRY_ASSIGN(const size_t more,
             file.data->read(static_cast<uint64_t>(offset) + done, sink.slice(done, sink.size() - done)));
  return done + more;
}

// What was not flushed along with the WRITE, and a new size: of direct I/O the kernel leaves that to us; behind
// buffered I/O it sends an FSYNC. `losses`: of before the WRITE, and not the descriptor's: another write may have told
// those already, and its next fsync still has to.
void FileSystem::reply_written(fuse_req_t request, OpenFile& file, const fuse_file_info* info, size_t count,
                               initiator::ErrorCursor& losses) {
  if (is_direct(info) && (info->flags & O_DSYNC) != 0) {
    const bool data_only = (info->flags & O_SYNC) != O_SYNC;
    const Result<> synced = data_only ? file.data->fdatasync(losses) : file.data->fsync(losses);
    if (!synced) return reply_lost(request, file, synced.error());
  }
  // Past the pages (what goes through them names no lock owner): a reader may have filled one meanwhile.
  if (info->lock_owner != 0) file.inode->doubt_pages();
  fuse_reply_write(request, count);
}

// The kernel's pages may hold what the file does not.
void FileSystem::reply_lost(fuse_req_t request, const OpenFile& file, const Error& error) {
  file.inode->doubt_pages();
  note_end_of_handle(*file.inode, error);
  fuse_reply_err(request, to_number(error));
}

// Another client may have appended since we last heard of the file. A layout alone is no answer to that: others
// may have one behind the same end.
int FileSystem::ask_end(fuse_req_t request, OpenFile& file) {
  const Question question = ask(file.inode.get());
  CompoundReply reply;
  const int error = call(request,
                         {nfs4::PutFileHandleArguments{file.inode->handle},
                          nfs4::GetAttributesArguments{client::stat_attributes()}},
                         reply, false);
  if (error != 0) return error;
  const auto* result = reply.result<nfs4::GetAttributesResponse>(1);
  const auto attributes =
      result != nullptr ? client::to_file_attributes(result->attributes) : std::unexpected(nfs4::Status::kIo);
  if (!attributes) return nfs4::to_errno(attributes.error());
  (void)take_in(*file.inode, question, *attributes);
  return 0;
}

// A write by anybody but root takes the set-user-id and set-group-id bits away (POSIX write(2)), which the kernel
// leaves to us (answer_flags.h). Costs a lock; a call to the server only where the bits are set. What changes the file
// at the server (WRITE, COPY, CLONE, ALLOCATE, DEALLOCATE) takes them in any case, so it is nothing if it refuses us:
// it has squashed root, or everybody. Nor do they stay behind bytes that go by RDMA: whoever is not root for the server
// gets no layout to write a file that has such bits, and those that there are go back before it gets them.
int FileSystem::clear_privileges(fuse_req_t request, fuse_ino_t node) {
  const int error = take_privileges(request, node);
  return error == EPERM || error == EACCES ? 0 : error;
}

int FileSystem::take_privileges(fuse_req_t request, fuse_ino_t node) {
  if (fuse_req_ctx(request)->uid == 0) return 0;
  const std::shared_ptr<Inode> file = inode(node);
  const std::optional<mode_t> mode = file->mode_without_privileges();
  if (!mode) return 0;
  nfs4::SetAttributesArguments set;
  set.attributes.mode = *mode;
  const Question question = ask(file.get());
  const auto known = file->last_known();
  const bool owns = known && known->status.st_uid == fuse_req_ctx(request)->uid;
  // In the writer's name if it owns the file. The attributes of before it tell one who is refused that a write has
  // taken the bits meanwhile.
  const Result<CompoundReply> answer = parts_.session.call(
      {nfs4::PutFileHandleArguments{file->handle}, nfs4::GetAttributesArguments{client::stat_attributes()},
       std::move(set), nfs4::GetAttributesArguments{client::stat_attributes()}},
      owns ? credential(request) : initiator::Credential{}, {.cache_reply = true});
  if (answer) {
    const auto* before = answer->result<nfs4::GetAttributesResponse>(1);
    const auto* after = answer->result<nfs4::GetAttributesResponse>(3);
    const auto* result = after != nullptr ? after : before;
    if (const auto now =
            result ? client::to_file_attributes(result->attributes) : std::unexpected(nfs4::Status::kIo))
      (void)take_in(*file, question, *now, after != nullptr);
  }
  // What comes next changes them, and the answer to a write tells the kernel no mode.
  file->expire();
  parts_.invalidator.attributes(node);
  return error_of(answer);
}

// Each close(2): what was written is known to the server when it returns, and errors come up.
void FileSystem::flush(fuse_req_t request, fuse_file_info* info) {
  OpenFile& file = open_file(info);
  Result<> closed;
  if (file.writable) closed = file.data->close(file.cursor);
  drop_posix_locks(file, info->lock_owner);
  if (!closed) return reply_lost(request, file, closed.error());
  fuse_reply_err(request, 0);
}

void FileSystem::fsync(fuse_req_t request, bool data_only, fuse_file_info* info) {
  OpenFile& file = open_file(info);
  const Result<> synced = data_only ? file.data->fdatasync(file.cursor) : file.data->fsync(file.cursor);
  if (!synced) return reply_lost(request, file, synced.error());
  fuse_reply_err(request, 0);
}

}  // namespace pnfsrdma::fuse_client

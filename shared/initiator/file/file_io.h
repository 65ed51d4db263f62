// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/initiator/brick/buffer.h"
#include "shared/initiator/file/error_cursor.h"
#include "shared/initiator/file/io.h"
#include "shared/initiator/file/layout_pin.h"
#include "shared/initiator/file/open_state.h"
#include "shared/initiator/file/pending_io.h"
#include "shared/initiator/file/pending_layout.h"
#include "shared/initiator/file/read_back_sums.h"
#include "shared/initiator/file/watch.h"
#include "shared/initiator/mds.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/pnfs_operations.h"

namespace pnfsrdma::initiator {

struct FileInside;

// What we know better than the server: written here under a layout and not committed yet.
struct LocalAttributes {
  uint64_t size = 0;                 // at least this
  std::optional<WallTime> modified;  // set while a LAYOUTCOMMIT is still to come
};

// The data of one open inode; shared by all its opens. Reads and writes go by RDMA under a layout, else
// through the MDS. Thread-safe: any number of FUSE threads at once. Write-through: nothing is cached here, so
// a write that was lost by a brick (its verifier changed before we flushed) is reported as EIO once per open
// file at the next fsync or close.
//
// Errors are errnos for FUSE: EIO, EBADF (no such open), ENOSPC, EDQUOT, EFBIG, EINTR, ETIMEDOUT, ESTALE,
// ESHUTDOWN.
class FileIo {
 public:
  explicit FileIo(std::shared_ptr<FileInside> inside);
  ~FileIo();
  FileIo(const FileIo&) = delete;
  FileIo& operator=(const FileIo&) = delete;

  // Bytes read: less than asked only at the end of the file.
  Result<size_t> read(uint64_t offset, BufferSlice sink);
  // Writes everything or fails.
  Result<size_t> write(uint64_t offset, BufferSlice source, Stability stability = Stability::kUnstable);
  // The same without waiting, for many at once; each costs what the transport costs, in steady state without an
  // allocation or a system call of ours. True: begun. When the I/O is_complete(), for which DataPath::progress()
  // and whoever else polls provide, finish() has its result. Until then `io` and the buffer belong to it. I/Os that
  // are in flight together have no order. False: it would have to wait (no layout, no connection, no room, a
  // closed gate) or fail: nothing has happened, call read() or write(). One thread at a time uses an `io`.
  // `listener`, if any, is told when it is complete, perhaps before this returns. With Doorbell::kLater it may not go
  // out before DataPath::ring(): several with one doorbell. `chains` (with kLater): writes that have to be durable
  // share their flush with others of these, behind all of them; none of them is complete before that is answered.
  bool start_read(PendingIo& io, uint64_t offset, BufferSlice sink, PendingIoListener* listener = nullptr,
                  Doorbell doorbell = Doorbell::kNow);
  bool start_write(PendingIo& io, uint64_t offset, BufferSlice source,
                   Stability stability = Stability::kUnstable, PendingIoListener* listener = nullptr,
                   Doorbell doorbell = Doorbell::kNow, FlushChains* chains = nullptr);
  // The result of a complete `io`, as of read() or write(). What was not acknowledged is done again and waited
  // for, when finish_may_wait() says so; another thread may do that. fsync covers what finish() has returned.
  Result<size_t> finish(PendingIo& io);
  bool finish_may_wait(const PendingIo& io) const;
  // In place of finish(): whatever was not acknowledged is the caller's business. A WRITE of it may still arrive until
  // something is written there anew (write() knows of it).
  void abandon(PendingIo& io);
  // O_APPEND: at the end of the file as known here (not atomic across clients): ask the server for it first.
  // Returns the offset it wrote at.
  Result<uint64_t> append(BufferSlice source, Stability stability = Stability::kUnstable);

  // The same without asking, where only we may write behind the end and know where it is. None: nothing was
  // appended, ask.
  Result<std::optional<uint64_t>> append_unasked(BufferSlice source,
                                                 Stability stability = Stability::kUnstable);

  // Has the brick change one word, as a whole towards all others that do so; what it was. Made once, also when the
  // connection is lost on the way. Errors: EINVAL (not aligned, or the file as known here ends before its end);
  // ENOTSUP and EAGAIN (nothing was changed: no memory is, or can be, granted, or the brick is older); EIO (it is not
  // known whether it was changed, or whether that is durable: Error::what() says which).
  Result<uint64_t> change_word(uint64_t offset, const WordIo& word);

  // Everything that was written before is durable, and what bricks have read back of these ranges then: CRC32C of each.
  // Errors: as fdatasync(); EINVAL (the file ends before that); ENOTSUP, EAGAIN (as change_word()).
  Result<ReadBackSums> flush_and_verify(std::span<const FileRange> ranges, ErrorCursor& cursor);

  // From here on, who signals a part of the range, on whichever host, is heard of, or there is a gap. Before the last
  // release() it is gone. Errors: EINVAL (the file ends before that); ENOTSUP, EAGAIN, ENOSPC (too many).
  Result<std::shared_ptr<Watch>> watch(FileRange range);
  // What was written of the range is durable and can be read by everybody, as behind an fdatasync of it; then those who
  // watch it are told. With an Error, some of them may have been. Errors: as fdatasync(); EINVAL, ENOTSUP, EAGAIN (as
  // watch()).
  Result<> signal(FileRange range, uint64_t value, ErrorCursor& cursor);

  // Where a new open file starts: losses of before are its business only if no other open file has heard of
  // them.
  ErrorCursor error_cursor() const;
  // Where a write that has to be durable starts, taken before it: it hears of what is lost from here on, whoever else
  // has heard of it, and takes no news from its open file.
  ErrorCursor losses_from_now() const;
  // Everything written before is durable as the device's class says; a new size is on the MDS. fsync also
  // sends the mtime.
  Result<> fdatasync(ErrorCursor& cursor);
  // fdatasync() would find nothing to do, and nothing to report. Does not wait.
  bool is_durable(const ErrorCursor& cursor) const;
  Result<> fsync(ErrorCursor& cursor);
  // FUSE flush (each close(2)): LAYOUTCOMMIT when anything was written, COMMIT when anything went through the MDS and
  // was not durable at once; waits for them. What went by RDMA only is not flushed: fsync does that.
  // Reports losses, and leaves them to be reported by fsync: the descriptor may be open elsewhere, too.
  Result<> close(const ErrorCursor& cursor);

  // Size and mtime are on the MDS when it returns, nothing deferred is left: call it before a SETATTR that
  // sets times and before a GETATTR whose answer must be exact.
  Result<> settle();
  // Before a lock is given up: settle(), and what went through the MDS is committed, so that it is never written
  // again over what others write then.
  Result<> hand_over();

  // Before a SETATTR(size): closes the gate beyond `new_size`, drains, flushes and commits what stays. The
  // LAYOUTRETURN to put in front of the SETATTR (after PUTFH), if any. Then exactly one truncated(). I/O
  // beyond goes through the MDS meanwhile. One truncation of a file at a time (the caller's inode lock or the
  // kernel's).
  Result<std::optional<nfs4::LayoutReturnArguments>> truncating(uint64_t new_size);
  // The answer to that LAYOUTRETURN, as soon as it is there: the SETATTR behind it may wait for a recall of
  // ours, which is numbered behind it. More than once does no harm.
  void layout_returned(const nfs4::LayoutReturnResult& result);
  // `done`: the SETATTR succeeded. What to hand to server_size() with the answer of a GETATTR behind it.
  uint64_t truncated(uint64_t new_size, bool done);
  // The server does not know the stateid of that LAYOUTRETURN (is_lost_state()): it has revoked what we hold.
  void layouts_refused(nfs4::Status status);

  // The answer of the LAYOUTGET behind an OPEN (DataPath::layout_at_open). `size`: of the file, if a GETATTR
  // behind it was answered.
  void take_layout(PendingLayout pending, const nfs4::LayoutGetResult& result, std::optional<uint64_t> size);

  // The server's word on the size, from any GETATTR. `version`: local_version() from before the GETATTR was
  // sent, at `asked`, so that an answer that was overtaken by a local write or truncation, or by the answer to a
  // GETATTR that was sent later, does not shrink the file.
  uint64_t local_version() const;
  // Of one in which nothing was written yet.
  static constexpr uint64_t kFirstVersion = 1;
  void server_size(uint64_t size, uint64_t version, SteadyTime asked);
  // For getattr replies: size and mtime as this client's own writes make them.
  LocalAttributes local_attributes() const;
  uint64_t size() const;
  // A READ behind the OPEN has brought so many bytes: counts it among those through the MDS.
  void count_read(size_t bytes);
  // mdsthreshold4 of this file, bytes of file size.
  void set_thresholds(uint64_t read_size, uint64_t write_size);

  // Last close, when each PendingIo is finished: settles, returns the layout when the server asked for
  // return_on_close. After it the OpenStateSource is not used any more. Layouts of a closed file are kept for the
  // next open while the FileIo lives.
  void release();

  // Written, answered, and not sent yet, under the write delegation (OpenStateSource::may_hold()).
  bool holds() const;
  // Another thread sends it; waits for nothing.
  void send_held_beside();

  // The bricks that I/O on the range may have to wait for; without one, whatever has to be done with what was
  // written. As far as is known here: none at all for a file that never had a layout.
  std::vector<Device*> devices(std::optional<FileRange> range) const;

  // For the data path itself.
  FileInside& inside() const { return *inside_; }

 private:
  std::shared_ptr<FileInside> inside_;
};

}  // namespace pnfsrdma::initiator

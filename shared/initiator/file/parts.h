// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/sync.h"
#include "shared/initiator/file/all_files.h"
#include "shared/initiator/file/file_io.h"
#include "shared/initiator/file/file_state.h"

namespace pnfsrdma::initiator {

// Fresh stateids are asked for this often: a recall may bump the seqid while a call travels.
inline constexpr int kStateidTries = 3;
// Servers that are restarted more often than this during one fsync or commit are not waited for.
inline constexpr int kRestorationsMax = 8;

// The answer to an operation on a layout that is not there any more.
bool is_layout_gone(nfs4::Status status);

// The inside of a FileIo; shared with tasks that outlive a call. One group of methods per .cc file.
struct FileIo::Parts : FileState {
  Parts(const Mount& what, AllFiles& all, nfs4::FileHandle file, uint64_t size);

  // --- transfer.cc: bytes between a buffer and the file
  // Moves all of `slice`; a READ ends early only at the end of the file.
  Result<size_t> move(const Io& io, uint64_t offset, BufferSlice slice);
  Result<size_t> move_now(const Io& io, uint64_t offset, BufferSlice slice);
  // One pin of the gate: returns the bytes done, at least one; none: go through the MDS.
  Result<std::optional<size_t>> step(const Io& io, uint64_t offset, BufferSlice slice);
  // True: inside. False: go through the MDS.
  Result<bool> enter(Direction direction, uint64_t offset, uint64_t length, LayoutPin& pin);
  Result<> check_devices(const LayoutPin& pin, uint32_t done) const;
  Result<> finish_pieces(const Io& io, const LayoutPin& pin, BufferSlice slice, uint32_t done);
  // Posts the pieces of a pin, one batch for each brick, and waits for all; a bit per piece that is done.
  uint32_t post_pieces(const Io& io, LayoutPin& pin, BufferSlice slice);
  struct BrickTurn;
  static Device* next_device(const LayoutPin& pin, const Device* behind);
  bool prepare(BrickTurn& turn, const Io& io, const LayoutPin& pin, BufferSlice slice, Device& device,
               std::span<WorkItem> room);
  size_t flush_items(const BrickTurn& turn, std::span<WorkItem> room);
  static void start(BrickTurn& turn, const LayoutPin& pin, SteadyTime deadline);
  uint32_t take_outcome(BrickTurn& turn, Direction direction, LayoutPin& pin, BufferSlice slice,
                        uint64_t noted);
  void count_bytes(Direction direction, uint64_t bytes);
  void note_written(const LayoutSegment& piece, BufferSlice source, const LayoutPin& pin,
                    const BrickVerifier& verifier, std::optional<uint64_t> flushed_behind);
  // No WRITE that was posted there can arrive any more: it would come over what goes through the MDS now.
  // `committing`: by whoever has claimed the commit. Error: kBrickSilent, or nobody wants to know any more.
  Result<> end_unknown(FileRange range, bool committing);
  Result<size_t> through_mds(Direction direction, uint64_t offset, BufferSlice slice);
  Result<size_t> read_through_mds(uint64_t offset, BufferSlice sink);
  Result<size_t> write_through_mds(uint64_t offset, BufferSlice source);
  // `keep`: until COMMIT; not of what may have been closed already.
  Result<size_t> send_writes(uint64_t offset, BufferSlice source, bool keep);
  Result<uint32_t> send_write(uint64_t offset, BufferSlice source, bool keep);

  // --- layout.cc: getting layouts
  // True: a layout that covers `offset` may be there now. False: go through the MDS.
  bool acquire(Direction direction, uint64_t offset, uint64_t length);
  bool layout_wanted(Direction direction, uint64_t offset, uint64_t length) const;
  nfs4::LayoutGetArguments what_to_ask(Direction direction, uint64_t offset, uint64_t length,
                                       const LayoutCache::Getting& getting) const;
  MetadataResult<> get_layout(Direction direction, nfs4::LayoutGetArguments wanted,
                              const LayoutCache::Getting& getting, uint64_t epoch);
  void refused(const MetadataError& error);
  // `hole_era`: HoleTrust::era() before it was asked for.
  std::vector<LayoutSegment> segments_of(const nfs4::LayoutGetResult& granted, uint32_t hole_era);
  void prefetch_behind(const LayoutPin& pin, Direction direction);
  void prefetch(Direction direction, uint64_t offset);

  // --- flush.cc: durability
  Result<> sync(bool data_only, ErrorCursor& cursor);
  // Something written is not flushed, or a flush is under way.
  bool to_be_flushed();
  // Flushes what was written and is not flushed. One flush of a file at a time; those that come meanwhile
  // wait for it. `through_gate`: for a recall or truncation; what the MDS has lost is not written again then
  // (EAGAIN).
  Result<> flush(bool through_gate);
  // The same, by another thread.
  void flush_beside();
  // Flushes and commits, if something was unflushed at the last call, too. By one thread.
  void flush_if_old();
  // By whoever has claimed the flush. `sent_again`: some of it was, and has to be flushed once more.
  Result<> flush_claimed(bool through_gate);
  Result<> flush_all(const Flush& flush, bool through_gate, bool& sent_again);
  Result<> flush_mds(const Flush& flush, bool through_gate, bool& sent_again);
  void set_sending_again(bool sending);
  Result<> flush_rdma(const Flush& flush, bool through_gate);
  struct FlushJob;
  struct FlushTarget;
  Result<> flush_devices(std::map<Device*, FlushJob, std::less<>>& jobs, const Flush& flush);
  // Error: what the LAYOUTCOMMIT that flushes there has failed with.
  Result<> prepare_flush(FlushJob& job, const Flush& flush);
  static void add_target(FlushJob& job, FlushTarget target);
  Result<> flush_by_layout_commit(FlushJob& job);
  // True: something was posted.
  bool start_flush(FlushJob& job, SteadyTime deadline);
  static Result<> finish_native(FlushJob& job);
  Result<> finish_message(FlushJob& job, const Flush& flush);
  Result<WriteVerifier> flush_by_mds(std::span<const FileRange> ranges);
  // What went through the MDS lies on a device that it alone knows: it is asked for the least of all, where
  // the mount requires memory that survives a loss of power. EIO: there is less.
  Result<> check_server();
  // An fsync's outcome; a loss the open file has not heard of is one.
  Result<> report_once(ErrorCursor& cursor, Result<> outcome);
  Result<> report(bool lost, Result<> outcome);

  // --- verifier.cc: whether a brick still has what it took
  // The connection has no answer, or its hello is not true any more: writes must not be noted under it.
  static bool outdated(const Connection& connection, const std::optional<brick::PersistReply>& reply);
  // Behind the flush: each brick that took some of it, and has not `answered` in it, is asked. Error: one
  // could not be asked, nothing is known.
  Result<> ask_the_others(const Flush& flush, std::span<const Device* const> answered);
  // DirtyList::verify(); what is void is written again by the next commit_now().
  void verify(const Flush& flush, const Device* device, const std::optional<xdr::FixedOpaque<8>>& now);
  // One round trip. Only an answer counts: a connection that nobody uses looks alive long after its brick is
  // gone, and what its hello said is old. None: the MDS knows no such brick any more, or has given up waiting
  // for it. Error: kBrickSilent, or nobody wants to know any more.
  Result<std::optional<BrickVerifier>> ask_verifier(Device& device);

  // --- restore.cc: what is written again: growth whose layout was lost, and what the MDS has lost

  // For a copy of what such a write brings beyond the server's end of file. None: make_room(), outside of the
  // gate.
  std::optional<KeptWrites::Room> room_for_copy(const LayoutPin& pin);
  // False: there is none for long; through the MDS.
  bool make_room();
  // When much is kept: commits without being asked.
  void commit_growth_early();
  void start_commit_of_growth();
  // By whoever has claimed the commit. Error: nothing has changed, or (the server refused) the growth is
  // lost.
  Result<> restore_growth();
  Result<> write_kept();
  void growth_lost(const Error& error);
  // Nobody writes by RDMA meanwhile: an old copy must not come over a newer write.
  Result<> behind_gate(const std::function<Result<>()>& work);
  // The copies in these ranges; nobody else writes or truncates meanwhile. Error: nobody wants to know any more,
  // or (the server refused) they are lost.
  Result<> send_again(const std::vector<FileRange>& ranges);
  Result<> send_copies(FileRange rest, BufferSlice buffer);
  Result<> settle_doubt();
  // When much is kept: flushes without being asked.
  void flush_unstable_early();

  // --- commit.cc: LAYOUTCOMMIT
  // Tells the MDS everything it does not know; waits.
  Result<> commit_now(std::vector<nfs4::PersistRange> persist = {});
  Result<> commit_as_mounted() {
    return patience.as_mounted([this] { return commit_now(); });
  }
  Result<> commit_claimed(const std::vector<nfs4::PersistRange>& persist);
  Result<> commit_once(const std::vector<nfs4::PersistRange>& persist);
  // Sends the mtime and does not wait; deferred when one is under way or was just sent.
  void commit_beside();
  // The commit is claimed; its end is in the answer.
  void send_commit();
  // `persist`: what the MDS has the brick flush first. None: there is no layout that it could be told under.
  std::optional<nfs4::LayoutCommitArguments> commit_arguments(const Commit& commit,
                                                              const std::vector<nfs4::PersistRange>& persist);
  // `holdings`: LayoutCache::holdings() when it was sent.
  Result<> commit_outcome(const Commit& commit, const MetadataResult<nfs4::LayoutCommitResult>& answer,
                          uint64_t holdings);
  // One LAYOUTCOMMIT of a file at a time. Error: aborted, or nobody waits any more.
  Result<> claim_commit();
  void end_commit();

  // --- recall.cc: giving layouts back
  // The gate is closed for `gate`. Drains, flushes, commits, returns `returned`.
  void give_back(nfs4::IoMode iomode, FileRange gate, FileRange returned, bool changed);
  // The segments of `gate` are forgotten and LAYOUTRETURN is sent. True: nothing of it is in force any more.
  bool return_layout(nfs4::IoMode iomode, FileRange gate, FileRange returned);
  // The same of everything, but the LAYOUTRETURN is one for all files, and somebody else's: between the two.
  void begin_bulk_return(FileRange gate, bool changed);
  void end_return(nfs4::IoMode iomode, FileRange gate, const std::optional<nfs4::Stateid>& left,
                  bool answered);
  // By ourselves, from a brick that does not answer: so nothing is flushed there. True: it is returned.
  // `again`: also if it is not held any more.
  bool take_from_brick(FileRange range, bool committing, bool again);
  // The same of a layout that is not held any more: a new session has it forgotten here, but not at the server
  // if that knows the client still. True: it is not in force there.
  bool take_forgotten(const UnknownWrites& writes, bool committing);
  // What a return needs of what lies behind the gate. Error: the MDS was not told of the growth.
  Result<> prepare_return(FileRange gate, bool changed);
  // What was grown and not committed has to be written again: by whoever comes next, or soon.
  void void_growth();
  Result<std::optional<nfs4::LayoutReturnArguments>> truncating(uint64_t new_size);
  struct Truncation;
  Truncation end_truncation();
  Result<std::optional<nfs4::LayoutReturnArguments>> prepare_truncation(uint64_t new_size);
  void layout_returned(const nfs4::LayoutReturnResult& result);
  uint64_t truncated(uint64_t new_size, bool done);
  // Everything, by ourselves: unmount, RECALL_ANY, a closed file that is dropped.
  void return_everything();

  const Mount mount;
  AllFiles& all_files;

  std::atomic<uint64_t> threshold_read_size{0};
  std::atomic<uint64_t> threshold_write_size{0};
  // Where a layout has led last.
  std::atomic<Device*> last_device{nullptr};
  std::atomic<bool> prefetching{false};
  std::atomic<bool> flush_posted{false};
  bool was_unflushed = false;  // flush_if_old()'s
  std::atomic<bool> return_on_close{false};
  // WRITEs through the MDS, and how many of them check_server() has found well.
  std::atomic<uint64_t> written_by_mds{0}, checked_by_mds{0};

  Mutex flush_mutex;
  bool flushing = false;
  bool sending_again = false;
  uint64_t silent_flushes = 0;  // that ended with kBrickSilent
  Condition flushed;

  Mutex commit_mutex;
  bool committing = false;
  bool commit_deferred = false;
  SteadyTime last_commit{};
  Condition commit_done;

  // Between truncating() and truncated().
  struct Truncation {
    FileRange gate;
    bool closed = false;
    bool returning = false;  // the LAYOUTRETURN is not answered yet
    uint64_t holdings = 0;   // LayoutCache::holdings() before the SETATTR
  };
  Mutex truncation_mutex;
  Condition truncation_done;
  std::optional<Truncation> truncation;
};

}  // namespace pnfsrdma::initiator

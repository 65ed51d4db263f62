// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "server/mds/bricks/brick_set.h"
#include "server/mds/grants/layout_table.h"
#include "server/mds/layout/endings.h"
#include "server/mds/layout/layout_records.h"
#include "server/mds/layout/recalls.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/records.h"
#include "server/mds/space/file_space.h"
#include "server/mds/space/inode_queue.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/counters.h"
#include "shared/base/event_loop.h"
#include "shared/base/join.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// How long an operation waits for a recall it caused before it is answered NFS4ERR_DELAY.
inline constexpr Milliseconds kRecallPatience{250};
// How long after such a DELAY nobody gets a new layout of the file: the one who was put off comes back first.
inline constexpr Milliseconds kReservation{1000};
// How long nobody becomes the only writer of a file behind its end again, once a second one has opened it while
// it had one: to recall costs more than to ask.
inline constexpr Milliseconds kEndShared{10'000};
// Layouts that end in one turn of the loop, files that are touched: each is one commit. So many grants of one count as
// one more.
inline constexpr size_t kLayoutsPerSlice = 64;
inline constexpr size_t kGrantsAsALayout = 16;

// The end of layouts, however it comes: returned, recalled, revoked, lost with a client or with the brick.
// One way for all: the grants leave the client's layout at once, count as reachable until the brick has
// answered, and only then what waited for it goes on: the recall, the reply of LAYOUTRETURN, the zeroing of
// the tail. Many grants of one layout die in pieces (kGrantsPerPiece), each of which is one task. Control loop only.
class Layouts final : public LayoutConflicts {
 public:
  Layouts(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks, FileSpace& space,
          LayoutTable& table, LayoutRecords& records, InodeQueue& queue, LayoutRecaller& recaller,
          Counters& counters, Milliseconds lease);
  ~Layouts() override;
  Layouts(const Layouts&) = delete;
  Layouts& operator=(const Layouts&) = delete;

  // --- LayoutConflicts ---
  void set_size(uint64_t inode, uint64_t size, uint64_t requester, Done done) override;
  void before_access_change(uint64_t inode, uint64_t requester, Done done) override;
  void before_owner_change(uint64_t inode, const InodeUpdate& owners, Done done) override;
  void before_set_id(uint64_t inode, uint64_t requester, Done done) override;
  void before_open_to_write(uint64_t inode, uint64_t requester, Done done) override;
  bool has_sole_writer(uint64_t inode, uint64_t requester) const override {
    return table_.end_holder(inode, requester) != 0;
  }
  bool may_be_written_by_others(uint64_t inode, uint64_t client) const override;
  bool may_be_used_by_others(uint64_t inode, uint64_t client) const override;
  void on_orphaned(uint64_t inode) override;
  void on_last_close(std::vector<uint64_t> files, std::function<void()> done) override;
  void before_delegation_revoked(uint64_t client, uint64_t inode, std::function<void(Fence)> done) override;
  void on_client_gone(uint64_t client, std::function<void()> done) override;
  nfs4::Status test_stateid(uint64_t client, const LayoutStateid& stateid) const override;
  nfs4::Status free_stateid(uint64_t client, const LayoutStateid& stateid) override;
  bool file_in_use(uint64_t inode) const override { return table_.in_use(inode); }
  bool client_holds_layouts(uint64_t client) const override { return table_.layouts_of_client(client) > 0; }

  // --- for LAYOUTGET, LAYOUTCOMMIT, LAYOUTRETURN and WRITE ---
  // The layout this stateid names: BAD_STATEID, OLD_STATEID, ADMIN_REVOKED; DELAY while handles of a layout that ends
  // may be alive.
  std::expected<HeldLayout*, nfs4::Status> find(uint64_t client, uint64_t inode,
                                                const LayoutStateid& stateid);
  // What the answer to a LAYOUTRETURN that is done says of the layout: its next stateid, which is on record; none:
  // nothing is left of it. DELAY: that cannot be put on record, or handles of what was taken meanwhile may be alive.
  Outcome<std::optional<LayoutStateid>> stateid_left(uint64_t client, uint64_t inode,
                                                     const StateidOther& other);
  // LAYOUTRETURN of one range; `done` when every handle that ends with it, or that had ended there before, is dead.
  void give_back(uint64_t client, uint64_t inode, const ByteRange& range, IoMode mode,
                 std::function<void()> done);
  // LAYOUTRETURN of everything it holds now, so many files a turn; not of what it gets meanwhile.
  void give_back_all(uint64_t client, IoMode mode, std::function<void()> done);
  // What LAYOUTGET booked for the client and then did not tell it: nobody would ever give it back.
  void take_back(uint64_t client, uint64_t inode, std::span<const HeldGrant> grants,
                 std::span<const ByteRange> holes);
  // Recalls `range` from everybody and waits at most kRecallPatience: true when nobody can reach it any more.
  void clear(uint64_t inode, const ByteRange& range, uint64_t requester, std::function<void(bool)> done);
  // Somebody holds a hole there, and may read zeros from it.
  bool holds_hole(uint64_t inode, const ByteRange& range);
  // The same for those who see a hole there.
  void clear_holes(uint64_t inode, const ByteRange& range, uint64_t except, std::function<void(bool)> done);
  // The same for those who may write at or behind `offset`: bytes never committed must not become part of a
  // file that grows over them.
  void clear_writers(uint64_t inode, uint64_t offset, uint64_t requester, std::function<void(bool)> done);
  // Asks the client for what it holds there; nobody waits for it.
  void recall(uint64_t client, uint64_t inode, const ByteRange& range) {
    recalls_.demand(client, inode, range, [] {});
  }
  // This client still sees holes where memory came; it is told, nobody waits for it.
  void recall_holes(uint64_t client, uint64_t inode, const ByteRange& range);
  // The file is kept for somebody who was put off because of layouts.
  bool reserved_against(uint64_t inode, uint64_t client);
  // Nobody else can change where the file ends, or write behind it, without a recall from this client.
  bool end_is_free(uint64_t inode, uint64_t client, uint64_t size);
  // Nobody but `except` holds anything behind the end that could be recalled: what the others know of where it is is
  // not true any more. False: on record somebody has it still, and nothing has changed.
  bool drop_end(uint64_t inode, uint64_t except);
  // Takes back what is ahead of some files, open ones too, but not of one; see FileSpace::TakeBack.
  void take_back_ahead(uint64_t except, const std::optional<QuotaId>& owner, std::function<void()> done);
  // The client's lease is over: it gets nothing new.
  bool gone(uint64_t client) const { return gone_.contains(client); }
  // Its layout of the file is being revoked: it must not learn that by being granted the next one.
  bool being_revoked(uint64_t client, uint64_t inode) const { return endings_.by_force(client, inode); }
  // before_delegation_revoked() keeps the client from this file; how often it has done so with any file of the client.
  bool fenced(uint64_t client, uint64_t inode) const { return fenced_->contains({client, inode}); }
  uint64_t fences(uint64_t client) const;
  void ask_for_less(uint64_t client);

  const Recalls& recalls() const { return recalls_; }
  SteadyTime now() const { return clock_.now(); }

  // --- for the administrator ---
  // Takes all the client holds of the file, now and without its help; `done` with the number of handles when
  // they are dead. nullopt: it holds nothing.
  void revoke_layout(uint64_t client, uint64_t inode, std::function<void(std::optional<size_t>)> done);
  // Asks for it back, as a conflict does: revoked after a lease.
  void recall_layout(uint64_t client, uint64_t inode);

  // --- for snapshots ---
  // Nobody gets a layout to write, and writers are asked for theirs, and everybody for what is ahead of files, which is
  // then freed; tails are cleaned. `done` when all have been asked and have answered, or not within kRecallPatience.
  void stop_writers(std::function<void()> done);
  void let_write() { stopped_ = false; }
  // Files that somebody may write by himself.
  size_t written() const { return table_.written(); }
  bool bricks_ready() const { return bricks_.ready(); }
  bool writers_stopped() const { return stopped_; }
  // Whether nobody may write by himself, all that was on the way has arrived, and nothing is behind the end of a file.
  void is_still(std::function<void(bool)> done);
  // Who still has what stop_writers() asked for loses it: `told` comes for each such layout before, and `done`
  // when their handles are dead. Nobody any more once it is not `wanted`.
  using Told = std::function<void(uint64_t client, InodeId inode)>;
  void revoke_writers(Told told, std::function<bool()> wanted, std::function<void()> done);
  // Nobody finds the files of the snapshot any more: their layouts end, and `done` when every handle is dead.
  void end_snapshot(SnapshotNumber snapshot, std::function<void()> done);

  // --- a brick's life ---
  // Layouts with memory on it are revoked, so many a turn; those of other bricks stay. What is left conflicts
  // meanwhile, and whoever uses it finds it revoked; the brick is not ready before all are.
  void on_brick_lost(BrickNumber brick);
  // The client's layout of the file is revoked now, if a part of it is on a lost brick.
  void end_lost(uint64_t inode, uint64_t client);
  // Of files with a tail there, so many at a time; when all that was held there has been revoked.
  void zero_tails(BrickNumber brick, std::function<void(bool)> done);
  void on_brick_ready();

 private:
  struct Reservation {
    uint64_t client = 0;
    SteadyTime until;
  };
  struct Clearing;
  // A brick that was lost: how far its layouts' end is.
  struct Loss {
    Endings::Place ending;          // up to this one they have been looked at
    std::vector<uint64_t> clients;  // the last one's files are being looked at
    uint64_t file = 0;              // up to this one they have been
    std::function<void()> then;     // the brick waits to be made ready
  };
  struct Sweep;

  // Who may write at or behind `offset`.
  std::vector<uint64_t> writers_past(uint64_t inode, uint64_t offset) const;
  void demand_all(uint64_t inode, const ByteRange& range, uint64_t requester,
                  const std::vector<uint64_t>& clients, std::function<void(bool)> done);
  void demand_each(uint64_t inode, const ByteRange& range, std::vector<uint64_t> clients, const Join& join);
  // What the metadata has of it; at once where that is in memory.
  void with_inode(uint64_t inode, std::function<void(const Outcome<InodePointer>&)> then);
  void resize(const Inode& present, uint64_t size, uint64_t requester, const InodeQueue::Turn& turn,
              const Done& done);
  void share_end(const Inode& present, uint64_t requester, const Done& done);
  void grow(uint64_t inode, uint64_t size, Done done);
  void revoke(uint64_t client, uint64_t inode) {
    revoke_layout(client, inode, [](std::optional<size_t>) {});
  }
  bool dying_within_reach(uint64_t client, uint64_t inode);
  nfs4::Status status_without_layout(uint64_t client, const StateidOther& other) const;
  void give_back(HeldLayout& layout, const ByteRange& range, IoMode mode, std::function<void()> done);
  std::vector<DyingPointer> begin_death(uint64_t client, uint64_t inode, std::vector<HeldGrant> grants);
  void end_grants(Ending ending, std::function<void()> done);
  void withdraw_next(const EndingPointer& ending);
  void withdrawn(const EndingPointer& ending, const DyingPointer& piece);
  void tell_revoked(uint64_t client, const StateidOther& stateid);
  void touch(uint64_t inode, const Batch& forgotten);
  void look_at_dead(const Ending& ending);
  void grants_dead(Ending& ending, const DyingGrants& piece);
  void writer_dead(const Ending& ending, const DyingGrants& piece);
  void take_back(uint64_t inode, std::function<void()> done);
  void recall_ahead(const Inode& present, const std::function<void()>& done);
  void clear_file(uint64_t inode, const Done& done);
  void tidy_file(uint64_t inode, const Done& done);
  void end_file(uint64_t inode, const Done& done);
  using Chosen = std::function<bool(const HeldLayout& layout)>;
  void end_holders(uint64_t inode, const Chosen& chosen, const Join& join);
  void tidy_up(uint64_t inode, std::function<void()> done = [] {});
  void reap(uint64_t inode);
  void reap_now(uint64_t inode);
  struct Returning;
  void give_back_slice(const std::shared_ptr<Returning>& returning);
  struct Forgetting;
  using ForgettingPointer = std::shared_ptr<Forgetting>;
  void forget_client(const ForgettingPointer& client);
  void take_layouts(Forgetting& client);
  void forget_pieces(Forgetting& client, size_t count);
  bool on_lost_brick(const HeldLayout& layout) const;
  void end_some_lost(uint64_t inode);
  void lost_slice(BrickNumber brick);
  size_t revoke_of_lost(Loss& loss, BrickNumber brick, size_t most);
  void zero_dirty_tails(BrickNumber brick, std::function<void(bool)> done);
  void zero_tail(BrickNumber brick, uint64_t inode, const Done& done);
  void zero_tail_behind(BrickNumber brick, uint64_t inode, uint64_t size, const InodeQueue::Turn& turn,
                        const Done& done);
  void touch_interrupted_files(std::function<void()> then);
  void touch_slice();
  Result<std::vector<std::string>> next_interrupted();
  void touch_files(const std::vector<std::string>& records);
  void reap_orphans();
  void sweep(const std::shared_ptr<Sweep>& sweep);
  // A page of files behind `from`.
  using Page = std::function<Result<std::vector<InodeId>>(InodeId from, size_t most)>;
  void gather(const std::shared_ptr<Sweep>& into, Page page, std::function<void(bool)> done,
              InodeId from = 0);
  // Of those with something ahead, too; then it begins.
  void gather_ahead(const std::shared_ptr<Sweep>& into);
  // In the next turn.
  void later(std::function<void()> task);

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  BrickSet& bricks_;
  FileSpace& space_;
  LayoutTable& table_;
  LayoutRecords& records_;
  InodeQueue& queue_;
  LayoutRecaller& recaller_;
  Counters& counters_;
  Recalls recalls_;
  std::map<uint64_t, std::set<std::array<std::byte, 12>>> revoked_;  // by client
  std::unordered_map<uint64_t, Reservation> reserved_;
  std::unordered_map<uint64_t, SteadyTime> end_shared_;  // until then
  using Fenced = std::multiset<std::pair<uint64_t, uint64_t>>;
  std::shared_ptr<Fenced> fenced_ = std::make_shared<Fenced>();  // client, file; a Fence may outlive us
  std::unordered_map<uint64_t, uint64_t> fences_;                // ever, by client
  Endings endings_;
  std::map<BrickNumber, Loss> lost_;
  std::unordered_set<uint64_t> reaping_;
  std::unordered_set<uint64_t> gone_;
  std::deque<uint64_t> gone_order_;
  bool stopped_ = false;  // writers, for a snapshot
  bool touched_interrupted_ = false;
  std::string next_interrupted_;                      // key of the next record
  std::vector<std::function<void()>> touch_waiters_;  // while they are being touched
  Lifetime lifetime_;
};

// The key under which RecordKind::kLayout says that somebody may be writing a file: whatever ends that
// without LAYOUTCOMMIT, a crash too, moves its change and mtime on.
std::string writing_record_key(uint64_t inode);

}  // namespace pnfsrdma::mds

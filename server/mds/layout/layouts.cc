// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/layouts.h"

#include <algorithm>
#include <utility>

#include "server/mds/meta/read_then.h"
#include "shared/base/join.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {
constexpr Milliseconds kReapAgain{1000};
// Files whose end is shared: more are looked through for those that are so no more.
constexpr size_t kEndsSharedMany = 4096;
// Clients that are asked for a layout in one turn.
constexpr size_t kRecallsPerSlice = 64;
constexpr ByteRange kWholeFile{0, kEndOfFile};
}  // namespace

std::string writing_record_key(uint64_t inode) {
  std::byte key[8];
  store_big_endian(key, inode);
  return std::string(as_text(key));
}

Layouts::Layouts(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks, FileSpace& space,
                 LayoutTable& table, LayoutRecords& records, InodeQueue& queue, LayoutRecaller& recaller,
                 Counters& counters, Milliseconds lease)
    : loop_(loop),
      clock_(clock),
      names_(names),
      bricks_(bricks),
      space_(space),
      table_(table),
      records_(records),
      queue_(queue),
      recaller_(recaller),
      counters_(counters),
      recalls_(
          loop, table, recaller, lease,
          {.forget = [this](uint64_t client, uint64_t inode,
                            const ByteRange& range) { give_back(client, inode, range, IoMode::kAny, [] {}); },
           .revoke = [this](uint64_t client, uint64_t inode) { revoke(client, inode); },
           .record = [this](const HeldLayout& layout) { return records_.changed(layout); }}),
      endings_([this](BrickNumber brick) {
        const BrickDevice* const device = bricks_.find(brick);
        return device != nullptr && device->usable();
      }) {}

Layouts::~Layouts() = default;

std::expected<HeldLayout*, nfs4::Status> Layouts::find(uint64_t client, uint64_t inode,
                                                       const LayoutStateid& stateid) {
  end_lost(inode, client);
  HeldLayout* layout = table_.find(inode, client);
  if (layout == nullptr || layout->stateid().other != stateid.other) {
    return std::unexpected(status_without_layout(client, stateid.other));
  }
  const nfs4::Status status = layout->check_seqid(stateid.seqid, recaller_.stateid_window(client));
  if (status != nfs4::Status::kOk) return std::unexpected(status);
  return layout;
}

Outcome<std::optional<LayoutStateid>> Layouts::stateid_left(uint64_t client, uint64_t inode,
                                                            const StateidOther& other) {
  HeldLayout* const layout = table_.find(inode, client);
  if (layout == nullptr || layout->stateid().other != other) {
    // All of it went by the return, or the rest was revoked while that was under way.
    const nfs4::Status status = status_without_layout(client, other);
    if (status != nfs4::Status::kBadStateid) return std::unexpected(status);
    return std::nullopt;
  }
  layout->advance();
  if (!records_.changed(*layout)) return std::unexpected(nfs4::Status::kDelay);
  return layout->stateid();
}

nfs4::Status Layouts::status_without_layout(uint64_t client, const StateidOther& other) const {
  if (endings_.has(client, other)) return nfs4::Status::kDelay;
  const auto revoked = revoked_.find(client);
  const bool was_revoked = revoked != revoked_.end() && revoked->second.contains(other);
  return was_revoked ? nfs4::Status::kAdminRevoked : nfs4::Status::kBadStateid;
}

nfs4::Status Layouts::test_stateid(uint64_t client, const LayoutStateid& stateid) const {
  const auto revoked = revoked_.find(client);
  if (revoked != revoked_.end() && revoked->second.contains(stateid.other))
    return nfs4::Status::kAdminRevoked;
  // Its end is not told before it is over.
  if (endings_.has(client, stateid.other)) return nfs4::Status::kOk;
  const HeldLayout* layout = table_.find(stateid.other);
  if (layout == nullptr || layout->client() != client) return nfs4::Status::kBadStateid;
  return layout->check_seqid(stateid.seqid, recaller_.stateid_window(client));
}

nfs4::Status Layouts::free_stateid(uint64_t client, const LayoutStateid& stateid) {
  const auto revoked = revoked_.find(client);
  if (revoked != revoked_.end() && revoked->second.erase(stateid.other) > 0) {
    if (revoked->second.empty()) {
      revoked_.erase(revoked);
      recaller_.revoked_layouts_freed(client);
    }
    return nfs4::Status::kOk;
  }
  return test_stateid(client, stateid) == nfs4::Status::kBadStateid ? nfs4::Status::kBadStateid
                                                                    : nfs4::Status::kLocksHeld;
}

void Layouts::ask_for_less(uint64_t client) {
  recaller_.recall_any(client, static_cast<uint32_t>(table_.layouts_of_client(client) / 2));
}

// --- recalls for somebody who waits ---

struct Layouts::Clearing {
  bool finished = false;
  EventLoop::TimerId timer = 0;
  std::function<void(bool)> done;

  void finish(bool cleared) {
    if (std::exchange(finished, true)) return;
    std::exchange(done, nullptr)(cleared);
  }
};

void Layouts::demand_all(uint64_t inode, const ByteRange& range, uint64_t requester,
                         const std::vector<uint64_t>& clients, std::function<void(bool)> done) {
  auto clearing = std::make_shared<Clearing>();
  clearing->done = std::move(done);
  const Join join([this, clearing] {
    loop_.cancel(clearing->timer);
    clearing->finish(true);
  });
  if (!clients.empty()) {
    clearing->timer = loop_.after(kRecallPatience, lifetime_.guard([this, clearing, inode, requester] {
      reserved_[inode] = {requester, clock_.now() + kReservation};
      clearing->finish(false);
    }));
  }
  counters_.layouts_recalled += clients.size();
  demand_each(inode, range, clients, join);
}

// A file may have thousands of holders: so many are asked in one turn.
void Layouts::demand_each(uint64_t inode, const ByteRange& range, std::vector<uint64_t> clients,
                          const Join& join) {
  const EventLoop::Step step(loop_, "layout-recalls");
  const size_t asked = std::min(clients.size(), kRecallsPerSlice);
  for (size_t i = 0; i < asked; ++i) recalls_.demand(clients[i], inode, range, join.part());
  if (asked == clients.size()) return join.end();
  clients.erase(clients.begin(), clients.begin() + static_cast<ptrdiff_t>(asked));
  loop_.at_next_turn(lifetime_.guard([this, inode, range, clients = std::move(clients), join] {
    demand_each(inode, range, clients, join);
  }));
}

void Layouts::clear(uint64_t inode, const ByteRange& range, uint64_t requester,
                    std::function<void(bool)> done) {
  end_some_lost(inode);
  std::vector<uint64_t> holders;
  for (const uint64_t client : table_.clients_of_file(inode)) {
    if (table_.reachable(inode, range, client)) holders.push_back(client);
  }
  demand_all(inode, range, requester, holders, std::move(done));
}

void Layouts::clear_writers(uint64_t inode, uint64_t offset, uint64_t requester,
                            std::function<void(bool)> done) {
  end_some_lost(inode);
  demand_all(inode, {offset, kEndOfFile}, requester, writers_past(inode, offset), std::move(done));
}

bool Layouts::holds_hole(uint64_t inode, const ByteRange& range) {
  return std::ranges::any_of(table_.of_file(inode),
                             [&](const HeldLayout* layout) { return layout->holds_hole(range); });
}

void Layouts::clear_holes(uint64_t inode, const ByteRange& range, uint64_t except,
                          std::function<void(bool)> done) {
  end_some_lost(inode);
  std::vector<uint64_t> holders;
  for (const HeldLayout* layout : table_.of_file(inode)) {
    if (layout->client() != except && layout->holds_hole(range)) holders.push_back(layout->client());
  }
  demand_all(inode, range, except, holders, std::move(done));
}

void Layouts::recall_holes(uint64_t client, uint64_t inode, const ByteRange& range) {
  const HeldLayout* layout = table_.find(inode, client);
  if (layout == nullptr) return;
  for (const ByteRange& hole : layout->holes_within(range)) recalls_.demand(client, inode, hole, [] {});
}

bool Layouts::reserved_against(uint64_t inode, uint64_t client) {
  const auto found = reserved_.find(inode);
  if (found == reserved_.end()) return false;
  if (found->second.until > clock_.now()) return found->second.client != client;
  reserved_.erase(found);
  return false;
}

bool Layouts::end_is_free(uint64_t inode, uint64_t client, uint64_t size) {
  if (const auto shared = end_shared_.find(inode); shared != end_shared_.end()) {
    if (clock_.now() < shared->second) return false;
    end_shared_.erase(shared);
  }
  if (recaller_.is_written_by_others(inode, client)) return false;
  if (recalls_.progress(client, inode, kWholeFile) != Recalls::Progress::kNone) return false;
  // Layouts outlive their opens: who is asked for his now does not stand in the way of the next question.
  const ByteRange behind{size, kEndOfFile};
  bool free = true;
  std::vector<uint64_t> unasked;
  for (const uint64_t other : writers_past(inode, size)) {
    if (other == client) continue;
    free = false;
    if (recalls_.progress(other, inode, behind) == Recalls::Progress::kNone) unasked.push_back(other);
  }
  demand_each(inode, behind, std::move(unasked), Join([] {}));
  return free;
}

std::vector<uint64_t> Layouts::writers_past(uint64_t inode, uint64_t offset) const {
  std::vector<uint64_t> found;
  // As a rule there is none, however many read.
  if (!table_.writable_past(inode, offset)) return found;
  for (const uint64_t client : table_.clients_of_file(inode)) {
    if (table_.writable_past(inode, offset, client)) found.push_back(client);
  }
  return found;
}

// --- operations in conflict ---

void Layouts::set_size(uint64_t inode, uint64_t size, uint64_t requester, Done done) {
  // Whoever could write there cannot be asked either: before the wait for them.
  const auto begin = [this, inode, size, requester, done = std::move(done)](nfs4::Status absent) {
    if (absent != nfs4::Status::kOk) return done(absent);
    queue_.exclusive(inode, [this, inode, size, requester, done](const InodeQueue::Turn& turn) {
      with_inode(inode, [this, inode, size, requester, turn, done](const Outcome<InodePointer>& present) {
        if (!present) return done(present.error());
        resize(**present, size, requester, turn, done);
      });
    });
  };
  with_inode(inode, [this, inode, size, begin](const Outcome<InodePointer>& present) {
    if (!present) return begin(present.error());
    const uint64_t end = std::min(size, (*present)->size);
    space_.absence(inode, {round_down(end, kGrainSize), kEndOfFile}, lifetime_.guard(begin));
  });
}

void Layouts::with_inode(uint64_t inode, std::function<void(const Outcome<InodePointer>&)> then) {
  read_then(names_.store(), lifetime_.token(), [this, inode] { return names_.get(inode); }, std::move(then));
}

void Layouts::resize(const Inode& present, uint64_t size, uint64_t requester, const InodeQueue::Turn& turn,
                     const Done& done) {
  const uint64_t inode = present.id;
  if (size > kFileSizeMax) return done(nfs4::Status::kFBig);
  const auto answer = [turn, done](nfs4::Status status) { done(status); };
  const bool grows = size >= present.size;
  const auto cut_or_grow = [this, inode, size, requester, grows, answer](bool all, nfs4::Status absent) {
    if (absent != nfs4::Status::kOk) return answer(absent);
    if (!all) return answer(nfs4::Status::kDelay);
    const auto reservation = reserved_.find(inode);
    if (reservation != reserved_.end() && reservation->second.client == requester)
      reserved_.erase(reservation);
    if (!drop_end(inode, requester)) return answer(nfs4::Status::kDelay);
    if (grows) return grow(inode, size, answer);
    space_.cut(inode, size, {.mtime = clock_.wall_now()}, answer);
  };
  const auto cleared = [this, inode, size, cut_or_grow](bool all) {
    space_.absence(inode, {round_down(size, kGrainSize), kEndOfFile},
                   lifetime_.guard([cut_or_grow, all](nfs4::Status absent) { cut_or_grow(all, absent); }));
  };
  if (grows) return clear_writers(inode, present.size, requester, cleared);
  clear(inode, {round_down(size, kGrainSize), kEndOfFile}, requester, cleared);
}

void Layouts::grow(uint64_t inode, uint64_t size, Done done) {
  space_.clean_tail(inode, [this, inode, size, done = std::move(done)](nfs4::Status cleaned) {
    if (cleaned != nfs4::Status::kOk) return done(cleaned);
    with_inode(inode, [this, inode, size, done](const Outcome<InodePointer>& present) {
      if (!present) return done(present.error());
      // LAYOUTCOMMIT takes no turn: the size may have grown past ours since.
      const auto updated =
          names_.update(inode, {.size = std::max(size, (*present)->size), .mtime = clock_.wall_now()});
      done(updated ? nfs4::Status::kOk : updated.error());
    });
  });
}

void Layouts::before_access_change(uint64_t inode, uint64_t requester, Done done) {
  end_some_lost(inode);
  std::vector<uint64_t> holders;
  for (const uint64_t client : table_.clients_of_file(inode)) {
    if (recaller_.is_open_by(inode, client)) continue;
    if (table_.find(inode, client) != nullptr || dying_within_reach(client, inode)) holders.push_back(client);
  }
  demand_all(inode, kWholeFile, requester, holders, [done = std::move(done)](bool cleared) {
    done(cleared ? nfs4::Status::kOk : nfs4::Status::kDelay);
  });
}

// Without its turn where there is room.
void Layouts::before_owner_change(uint64_t inode, const InodeUpdate& owners, Done done) {
  read_then(
      names_.store(), lifetime_.token(), [this, inode, owners] { return space_.check_owners(inode, owners); },
      [this, inode, owners, done = std::move(done)](const Outcome<>& fits) {
        if (fits) return done(nfs4::Status::kOk);
        if (fits.error() != nfs4::Status::kDQuot) return done(fits.error());
        queue_.exclusive(inode, [this, inode, owners, done](const InodeQueue::Turn& turn) {
          space_.make_owners_allowance(inode, owners, [turn, done](nfs4::Status status) { done(status); });
        });
      });
}

void Layouts::before_set_id(uint64_t inode, uint64_t requester, Done done) {
  queue_.exclusive(inode, [this, inode, requester, done = std::move(done)](InodeQueue::Turn turn) {
    // The turn ends when the new mode is committed: a LAYOUTGET behind it sees that.
    clear_writers(inode, 0, requester,
                  [turn, done](bool cleared) { done(cleared ? nfs4::Status::kOk : nfs4::Status::kDelay); });
  });
}

void Layouts::before_open_to_write(uint64_t inode, uint64_t requester, Done done) {
  if (table_.end_holder(inode, requester) == 0) return done(nfs4::Status::kOk);
  with_inode(inode, [this, requester, done = std::move(done)](const Outcome<InodePointer>& present) {
    if (!present) return done(present.error());
    share_end(**present, requester, done);
  });
}

bool Layouts::may_be_written_by_others(uint64_t inode, uint64_t client) const {
  if (!touched_interrupted_) return true;
  return std::ranges::any_of(writers_past(inode, 0), [client](uint64_t writer) { return writer != client; });
}

bool Layouts::may_be_used_by_others(uint64_t inode, uint64_t client) const {
  if (!touched_interrupted_) return true;
  return std::ranges::any_of(table_.clients_of_file(inode),
                             [client](uint64_t holder) { return holder != client; });
}

bool Layouts::drop_end(uint64_t inode, uint64_t except) {
  for (HeldLayout* const layout : table_.of_file(inode)) {
    if (layout->client() == except || layout->end_token() == 0) continue;
    const uint64_t token = layout->end_token();
    layout->set_end_token(0);
    if (records_.changed(*layout)) continue;
    layout->set_end_token(token);
    return false;
  }
  return true;
}

void Layouts::share_end(const Inode& present, uint64_t requester, const Done& done) {
  const uint64_t inode = present.id;
  const uint64_t holder = table_.end_holder(inode, requester);
  if (holder == 0) return done(nfs4::Status::kOk);
  if (end_shared_.size() >= kEndsSharedMany)
    std::erase_if(end_shared_, [now = clock_.now()](const auto& each) { return each.second <= now; });
  // From here on, so that he does not get it again before the other one has the file open.
  end_shared_[inode] = clock_.now() + kEndShared;
  end_some_lost(inode);
  std::vector<uint64_t> holders;
  if (table_.writable_past(inode, present.size, holder)) holders.push_back(holder);
  demand_all(inode, {present.size, kEndOfFile}, requester, holders,
             [this, inode, requester, done](bool cleared) {
               if (!cleared) return done(nfs4::Status::kDelay);
               done(drop_end(inode, requester) ? nfs4::Status::kOk : nfs4::Status::kDelay);
             });
}

// --- orphans and space ahead of the size ---

void Layouts::on_orphaned(uint64_t inode) {
  reap(inode);
}

void Layouts::on_last_close(std::vector<uint64_t> files, std::function<void()> done) {
  read_then(
      names_.store(), lifetime_.token(),
      [this, files = std::move(files)] {
        std::vector<InodePointer> present;
        for (const uint64_t inode : files) {
          if (auto one = names_.get(inode)) present.push_back(*std::move(one));
        }
        return present;
      },
      [this, done = std::move(done)](const std::vector<InodePointer>& present) {
        for (const InodePointer& inode : present) {
          if (!inode->is_regular()) continue;
          if (inode->flags & kInodeOrphan) {
            reap(inode->id);
          } else if (space_.ahead().contains(inode->id)) {
            take_back(inode->id, [] {});
          }
        }
        done();
      });
}

void Layouts::take_back_ahead(uint64_t except, const std::optional<QuotaId>& owner,
                              std::function<void()> done) {
  struct Round {
    EventLoop::TimerId timer = 0;
    std::function<void()> done;
  };
  const std::vector<InodeId> files = owner ? space_.ahead().ask(except, *owner) : space_.ahead().ask(except);
  auto round = std::make_shared<Round>(Round{.done = std::move(done)});
  const Join join([this, round] {
    loop_.cancel(round->timer);
    if (round->done) std::exchange(round->done, nullptr)();
  });
  round->timer = loop_.after(kRoomPatience, lifetime_.guard([round] {
    if (round->done) std::exchange(round->done, nullptr)();
  }));
  for (const InodeId inode : files) {
    take_back(inode, [this, inode, end = join.part()] {
      space_.ahead().asked(inode);
      end();
    });
  }
  // None left to ask: others wait for the answers, and so do we.
  if (!files.empty()) join.end();
}

// What is ahead of the file: whoever reaches it commits what he has written there, and gives it back.
void Layouts::take_back(uint64_t inode, std::function<void()> done) {
  with_inode(inode, [this, inode, done = std::move(done)](const Outcome<InodePointer>& present) {
    if (present) return recall_ahead(**present, done);
    space_.ahead().leave(inode);
    done();
  });
}

void Layouts::recall_ahead(const Inode& present, const std::function<void()>& done) {
  const uint64_t inode = present.id;
  const ByteRange ahead{kept_end(present.size), kEndOfFile};
  std::vector<uint64_t> holders;
  for (const uint64_t client : table_.clients_of_file(inode)) {
    if (table_.reachable(inode, ahead, client)) holders.push_back(client);
  }
  const Join join([this, inode, done] { tidy_up(inode, done); });
  counters_.layouts_recalled += holders.size();
  demand_each(inode, ahead, std::move(holders), join);
}

// Nobody is known to reach what is ahead of the file.
void Layouts::tidy_up(uint64_t inode, std::function<void()> done) {
  if (!space_.ahead().contains(inode)) return done();
  queue_.exclusive(inode, [this, inode, done = std::move(done)](const InodeQueue::Turn& turn) {
    // While the brick of that is away there is nothing to gain: the next close or lost layout brings us back.
    space_.trim(inode, [turn, done](nfs4::Status) { done(); });
  });
}

void Layouts::reap(uint64_t inode) {
  if (recaller_.is_open(inode) || !reaping_.insert(inode).second) return;
  // No patience needed: nobody waits. The clients' lease bounds it.
  demand_each(inode, kWholeFile, table_.clients_of_file(inode), Join([this, inode] { reap_now(inode); }));
}

void Layouts::reap_now(uint64_t inode) {
  queue_.exclusive(inode, [this, inode](const InodeQueue::Turn& turn) {
    with_inode(inode, [this, inode, turn](const Outcome<InodePointer>& present) {
      reaping_.erase(inode);
      if (!present || ((*present)->flags & kInodeOrphan) == 0 || recaller_.is_open(inode)) return;
      // Somebody's answer is on its way, or handles are dying that nobody waits for.
      if (table_.in_use(inode)) {
        loop_.after(kReapAgain, lifetime_.guard([this, inode] { reap(inode); }));
        return;
      }
      space_.destroy(inode, [this, inode, turn](nfs4::Status status) {
        if (status == nfs4::Status::kOk || status == nfs4::Status::kStale) return;
        loop_.after(kReapAgain, lifetime_.guard([this, inode] { reap(inode); }));
      });
    });
  });
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "server/mds/layout/layouts.h"
#include "server/mds/meta/read_then.h"
#include "shared/base/join.h"

// How layouts end, and handles die.
namespace pnfsrdma::mds {

namespace {
// Clients whose end is remembered: longer than any operation of theirs can still be waiting.
constexpr size_t kGoneRemembered = 65536;
// Grants that die in the turn of their brick's answer, which may come with many others.
constexpr size_t kFewGrants = 64;
constexpr ByteRange kAllOfIt{0, kEndOfFile};

// Whose records go with that of their layout; those of other pieces go before each is withdrawn.
std::span<const HeldGrant> first_of(const std::vector<DyingPointer>& pieces) {
  if (pieces.empty()) return {};
  return pieces.front()->grants;
}
}  // namespace

void Layouts::give_back(uint64_t client, uint64_t inode, const ByteRange& range, IoMode mode,
                        std::function<void()> done) {
  HeldLayout* layout = table_.find(inode, client);
  if (layout == nullptr) return done();
  // Before the layout can go: what is dying keeps the file in use.
  DyingPieces dying = table_.begin_death(inode, client, table_.give_back(*layout, range, mode));
  records_.given_back(*layout, range, first_of(dying));
  if (layout->empty()) table_.erase(inode, client);
  end_grants(client, inode, std::move(dying), Ending::kReturned, std::move(done));
}

struct Layouts::Returning {
  uint64_t client = 0;
  IoMode mode = IoMode::kAny;
  uint64_t newest = 0;  // of the versions that the client knows of
  uint64_t file = 0;    // up to this one all has been returned
  Join join;
};

void Layouts::give_back_all(uint64_t client, IoMode mode, std::function<void()> done) {
  give_back_slice(std::make_shared<Returning>(
      Returning{.client = client, .mode = mode, .newest = table_.versions(), .join = Join(std::move(done))}));
}

void Layouts::give_back_slice(const std::shared_ptr<Returning>& returning) {
  const EventLoop::Step step(loop_, "layoutreturn-all", returning->client);
  const std::vector<uint64_t> files =
      table_.files_of_client(returning->client, kLayoutsPerSlice, returning->file);
  size_t ended = 0;
  for (const uint64_t inode : files) {
    if (ended >= kLayoutsPerSlice) break;
    returning->file = inode;
    ++ended;
    const HeldLayout* layout = table_.find(inode, returning->client);
    // Of a newer version: what an answer behind this call has given it. That it has not returned.
    if (layout == nullptr || layout->version() > returning->newest) continue;
    ended += layout->grants().size() / kGrantsAsALayout;
    give_back(returning->client, inode, kAllOfIt, returning->mode, returning->join.part());
  }
  if (ended < kLayoutsPerSlice) return returning->join.end();
  loop_.at_own_turn(lifetime_.guard([this, returning] { give_back_slice(returning); }));
}

void Layouts::take_back(uint64_t client, uint64_t inode, std::span<const HeldGrant> grants,
                        std::span<const ByteRange> holes) {
  HeldLayout* layout = table_.find(inode, client);
  if (layout == nullptr) return;
  for (const ByteRange& hole : holes) layout->take_back_hole(hole);
  DyingPieces dying = table_.begin_death(inode, client, table_.take_back(*layout, grants));
  if (layout->empty()) {
    records_.gone(*layout, {});
    table_.erase(inode, client);
  }
  end_grants(client, inode, std::move(dying), Ending::kReturned, [] {});
}

void Layouts::revoke_layout(uint64_t client, uint64_t inode,
                            std::function<void(std::optional<size_t>)> done) {
  HeldLayout* layout = table_.find(inode, client);
  if (layout == nullptr) return done(std::nullopt);
  revoked_[client].insert(layout->stateid().other);
  std::vector<HeldGrant> dead = table_.give_back(*layout, kAllOfIt, IoMode::kAny);
  const size_t handles = dead.size();
  DyingPieces dying = table_.begin_death(inode, client, std::move(dead));
  records_.gone(*layout, first_of(dying));
  table_.erase(inode, client);
  ++counters_.layouts_revoked;
  recaller_.layouts_revoked(client);
  end_grants(client, inode, std::move(dying), Ending::kByForce,
             [handles, done = std::move(done)] { done(handles); });
}

void Layouts::recall_layout(uint64_t client, uint64_t inode) {
  if (table_.find(inode, client) == nullptr) return;
  ++counters_.layouts_recalled;
  recalls_.demand(client, inode, kAllOfIt, [] {});
}

// Grants that have left a client's layout of a file at once.
struct Layouts::Ended {
  uint64_t client = 0;
  uint64_t inode = 0;
  Ending ending = Ending::kReturned;
  DyingPieces pieces;
  size_t begun = 0;  // of them
  size_t dead = 0;   // likewise

  bool small() const { return pieces.size() == 1 && pieces.front()->grants.size() <= kFewGrants; }
  bool writes() const {
    return std::ranges::any_of(pieces, [](const DyingPointer& piece) { return piece->writable_end > 0; });
  }
};

// The table has `pieces` as dying. Withdraws them; never needs the client's help.
void Layouts::end_grants(uint64_t client, uint64_t inode, DyingPieces pieces, Ending ending,
                         std::function<void()> done) {
  auto waiting = std::make_shared<Waiting>(Waiting{.bricks = {}, .done = std::move(done)});
  for (const DyingPointer& piece : pieces) {
    for (const HeldGrant& grant : piece->grants) waiting->bricks.insert(bricks_.at(grant.logical).number());
  }
  // What had no grant, holes, has ended, too.
  if (pieces.empty()) pieces.push_back(std::make_shared<const DyingGrants>());
  const auto ended = std::make_shared<Ended>(
      Ended{.client = client, .inode = inode, .ending = ending, .pieces = std::move(pieces)});
  const uint64_t number = next_waiting_++;
  waiting_.emplace(number, waiting);
  withdraw_next(ended, number);
  const auto away = [this](BrickNumber brick) { return !bricks_.find(brick)->usable(); };
  if (std::ranges::any_of(waiting->bricks, away)) waiting->finish();
}

// A piece that waits for its brick holds up no other one.
void Layouts::withdraw_next(const EndedPointer& ended, uint64_t waiting) {
  const EventLoop::Step step(loop_, "handles-withdrawn", ended->client);
  const DyingPointer piece = ended->pieces[ended->begun++];
  if (ended->begun > 1) records_.withdrawn(ended->inode, ended->client, piece->grants);
  bricks_.withdraw(ended->client, piece->grants, lifetime_.guard([this, ended, piece, waiting] {
    if (ended->small()) return withdrawn(ended, piece, waiting);
    loop_.at_next_turn(lifetime_.guard([this, ended, piece, waiting] { withdrawn(ended, piece, waiting); }));
  }));
  if (ended->begun < ended->pieces.size())
    loop_.at_next_turn(lifetime_.guard([this, ended, waiting] { withdraw_next(ended, waiting); }));
}

void Layouts::withdrawn(const EndedPointer& ended, const DyingPointer& piece, uint64_t waiting) {
  look_then(
      names_.store(), lifetime_.token(), [this, ended] { look_at_dead(*ended); },
      [this, ended, piece, waiting] {
        grants_dead(*ended, *piece);
        if (ended->dead < ended->pieces.size()) return;
        const auto found = waiting_.extract(waiting);
        found.mapped()->finish();
      });
}

// What grants_dead() reads; until then they count as dying.
void Layouts::look_at_dead(const Ended& ended) {
  static_cast<void>(names_.get(ended.inode));
  if (ended.writes()) static_cast<void>(space_.tail_dirty(ended.inode));
}

void Layouts::grants_dead(Ended& ended, const DyingGrants& piece) {
  const uint64_t inode = ended.inode;
  table_.end_death(inode, piece);
  ++ended.dead;
  if (piece.writable_end > 0) writer_dead(ended, piece);
  recalls_.settle(ended.client, inode);
  // Once for all of them: it takes turns of the inode.
  if (ended.dead == ended.pieces.size() && ended.writes() && space_.tail_dirty(inode)) {
    queue_.exclusive(
        inode, [this, inode](InodeQueue::Turn turn) { space_.clean_tail(inode, [turn](nfs4::Status) {}); });
  }
  if (table_.in_use(inode) || recaller_.is_open(inode)) return;
  const auto present = names_.get(inode);
  if (present && ((*present)->flags & kInodeOrphan) != 0) return reap(inode);
  tidy_up(inode);
}

void Layouts::writer_dead(const Ended& ended, const DyingGrants& piece) {
  const uint64_t inode = ended.inode;
  std::vector<ByteRange> written;
  for (const HeldGrant& grant : piece.grants) {
    if (grant.writable) written.push_back(grant.file);
  }
  space_.left_behind(inode, written);
  if (ended.ending == Ending::kByForce) space_.rest(inode);
  Batch forgotten;
  if (!table_.writable(inode)) Records::erase(forgotten, RecordKind::kLayout, writing_record_key(inode));
  // By force: it may have written what it never told us, up to now.
  if (ended.ending == Ending::kByForce) {
    touch(inode, forgotten);
  } else if (!forgotten.empty()) {
    static_cast<void>(names_.store().commit(forgotten, CommitKind::kState));
  }
}

// Moves the file's change and mtime, in one commit with what is to be forgotten then; nothing is when it
// fails and the file is there.
void Layouts::touch(uint64_t inode, const Batch& forgotten) {
  const auto touched = names_.update(inode, {.mtime = clock_.wall_now()}, forgotten, CommitKind::kState);
  if (!touched && touched.error() == nfs4::Status::kStale && !forgotten.empty())
    static_cast<void>(names_.store().commit(forgotten, CommitKind::kState));
}

struct Layouts::Forgetting {
  uint64_t client = 0;
  std::deque<std::pair<EndedPointer, DyingPointer>> dying;  // out of their layouts
  std::function<void()> done;
};

void Layouts::on_client_gone(uint64_t client, std::function<void()> done) {
  if (gone_.insert(client).second) gone_order_.push_back(client);
  if (gone_order_.size() > kGoneRemembered) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
  // Fence first: whatever it still holds is dead when this is answered.
  bricks_.close_session(client, lifetime_.guard([this, client, done = std::move(done)] {
    const auto forgetting =
        std::make_shared<Forgetting>(Forgetting{.client = client, .dying = {}, .done = done});
    // Many may end at once: one slice a turn, whosever it is.
    loop_.at_own_turn(lifetime_.guard([this, forgetting] { forget_client(forgetting); }));
  }));
}

// The layouts of a client that no brick lets in any more. Until its turn comes each counts as reachable.
void Layouts::forget_client(const ForgettingPointer& client) {
  if (client->dying.empty()) take_layouts(*client);
  size_t count = 0;
  for (size_t cost = 0; count < client->dying.size() && cost < kLayoutsPerSlice; ++count)
    cost += 1 + client->dying[count].second->grants.size() / kGrantsAsALayout;
  look_then(
      names_.store(), lifetime_.token(),
      [this, client, count] {
        for (size_t i = 0; i < count; ++i) look_at_dead(*client->dying[i].first);
      },
      [this, client, count] {
        forget_pieces(*client, count);
        if (!client->dying.empty() || table_.layouts_of_client(client->client) > 0)
          return loop_.at_own_turn(lifetime_.guard([this, client] { forget_client(client); }));
        revoked_.erase(client->client);
        client->done();
      });
}

void Layouts::take_layouts(Forgetting& client) {
  const EventLoop::Step step(loop_, "client-layouts", client.client);
  size_t cost = 0;
  for (const uint64_t inode : table_.files_of_client(client.client, kLayoutsPerSlice)) {
    if (cost >= kLayoutsPerSlice) break;
    HeldLayout& layout = *table_.find(inode, client.client);
    cost += 1 + layout.grants().size() / kGrantsAsALayout;
    DyingPieces pieces =
        table_.begin_death(inode, client.client, table_.give_back(layout, kAllOfIt, IoMode::kAny));
    records_.gone(layout, first_of(pieces));
    table_.erase(inode, client.client);
    if (pieces.empty()) pieces.push_back(std::make_shared<const DyingGrants>());
    const auto ended = std::make_shared<Ended>(Ended{
        .client = client.client, .inode = inode, .ending = Ending::kByForce, .pieces = std::move(pieces)});
    for (const DyingPointer& piece : ended->pieces) client.dying.emplace_back(ended, piece);
  }
}

void Layouts::forget_pieces(Forgetting& client, size_t count) {
  const EventLoop::Step step(loop_, "client-layouts", client.client);
  for (; count > 0; --count) {
    const auto [ended, piece] = client.dying.front();
    client.dying.pop_front();
    if (piece != ended->pieces.front()) records_.withdrawn(ended->inode, ended->client, piece->grants);
    grants_dead(*ended, *piece);
  }
}

}  // namespace pnfsrdma::mds

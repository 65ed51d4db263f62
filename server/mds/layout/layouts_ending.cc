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
constexpr ByteRange kAllOfIt{0, kEndOfFile};

// Whose records go with that of their layout; those of other pieces go before each is withdrawn.
std::span<const HeldGrant> first_of(const std::vector<DyingPointer>& pieces) {
  if (pieces.empty()) return {};
  return pieces.front()->grants;
}
}  // namespace

std::vector<DyingPointer> Layouts::begin_death(uint64_t client, uint64_t inode,
                                               std::vector<HeldGrant> grants) {
  return table_.begin_death(inode, client, std::move(grants),
                            [this](uint64_t logical) { return bricks_.at(logical).number(); });
}

void Layouts::give_back(uint64_t client, uint64_t inode, const ByteRange& range, IoMode mode,
                        std::function<void()> done) {
  const Join join(std::move(done));
  // What he gave back there before, or was revoked, is not dead because he says it again.
  endings_.join(client, inode, range, join);
  if (HeldLayout* const layout = table_.find(inode, client); layout != nullptr)
    give_back(*layout, range, mode, join.part());
  join.end();
}

void Layouts::give_back(HeldLayout& layout, const ByteRange& range, IoMode mode, std::function<void()> done) {
  const uint64_t client = layout.client();
  const uint64_t inode = layout.inode();
  Ending ending{.client = client, .inode = inode};
  // Before the layout can go: what is dying keeps the file in use.
  ending.pieces = begin_death(client, inode, table_.give_back(layout, range, mode));
  records_.given_back(layout, range, first_of(ending.pieces));
  if (layout.empty()) {
    ending.stateid = layout.stateid().other;
    table_.erase(inode, client);
  }
  end_grants(std::move(ending), std::move(done));
}

struct Layouts::Returning {
  uint64_t client = 0;
  IoMode mode = IoMode::kAny;
  uint64_t newest = 0;  // of the versions that the client knows of
  uint64_t file = 0;    // up to this one all has been returned
  Join join;
};

void Layouts::give_back_all(uint64_t client, IoMode mode, std::function<void()> done) {
  const auto returning = std::make_shared<Returning>(
      Returning{.client = client, .mode = mode, .newest = table_.versions(), .join = Join(std::move(done))});
  endings_.join(client, returning->join);
  give_back_slice(returning);
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
    // Of a newer version: an answer behind this call has told it. That it has not returned.
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
  Ending ending{.client = client, .inode = inode};
  ending.pieces = begin_death(client, inode, table_.take_back(*layout, grants));
  if (layout->empty()) {
    ending.stateid = layout->stateid().other;
    records_.gone(*layout, {});
    table_.erase(inode, client);
  }
  end_grants(std::move(ending), [] {});
}

void Layouts::revoke_layout(uint64_t client, uint64_t inode,
                            std::function<void(std::optional<size_t>)> done) {
  HeldLayout* layout = table_.find(inode, client);
  if (layout == nullptr) return done(std::nullopt);
  const StateidOther stateid = layout->stateid().other;
  std::vector<HeldGrant> dead = table_.give_back(*layout, kAllOfIt, IoMode::kAny);
  const size_t handles = dead.size();
  Ending ending{.client = client, .inode = inode, .stateid = stateid, .cause = Ending::Cause::kByForce};
  ending.pieces = begin_death(client, inode, std::move(dead));
  records_.gone(*layout, first_of(ending.pieces));
  table_.erase(inode, client);
  ++counters_.layouts_revoked;
  end_grants(std::move(ending), [this, client, stateid, handles, done = std::move(done)] {
    tell_revoked(client, stateid);
    done(handles);
  });
}

void Layouts::before_delegation_revoked(uint64_t client, uint64_t inode, std::function<void(Fence)> done) {
  ++fences_[client];
  const auto place = fenced_->emplace(client, inode);
  Fence fence{&*place, [fenced = fenced_, place](const void*) { fenced->erase(place); }};
  const Join join([done = std::move(done), fence = std::move(fence)] { done(fence); });
  endings_.join(client, inode, kAllOfIt, join);
  revoke_layout(client, inode, [end = join.part()](std::optional<size_t>) { end(); });
  join.end();
}

uint64_t Layouts::fences(uint64_t client) const {
  const auto found = fences_.find(client);
  return found == fences_.end() ? 0 : found->second;
}

// Not before: a client that knows takes what it has under way for dead, and writes by another way.
void Layouts::tell_revoked(uint64_t client, const StateidOther& stateid) {
  if (gone(client)) return;
  revoked_[client].insert(stateid);
  recaller_.layouts_revoked(client);
}

void Layouts::recall_layout(uint64_t client, uint64_t inode) {
  if (table_.find(inode, client) == nullptr) return;
  ++counters_.layouts_recalled;
  recalls_.demand(client, inode, kAllOfIt, [] {});
}

// The table has the pieces as dying. Withdraws them; never needs the client's help.
void Layouts::end_grants(Ending ending, std::function<void()> done) {
  withdraw_next(endings_.add(std::move(ending), std::move(done)));
}

// A piece that waits for its brick holds up no other one.
void Layouts::withdraw_next(const EndingPointer& ending) {
  const EventLoop::Step step(loop_, "handles-withdrawn", ending->client);
  const DyingPointer piece = ending->pieces[ending->begun];
  if (ending->begun > 0) records_.withdrawn(ending->inode, ending->client, piece->grants);
  bricks_.withdraw(ending->client, piece->grants, lifetime_.guard([this, ending, piece] {
    if (ending->small()) return withdrawn(ending, piece);
    loop_.at_next_turn(lifetime_.guard([this, ending, piece] { withdrawn(ending, piece); }));
  }));
  if (ending->begun + 1 < ending->pieces.size())
    loop_.at_next_turn(lifetime_.guard([this, ending] { withdraw_next(ending); }));
  endings_.begun(*ending);
}

void Layouts::withdrawn(const EndingPointer& ending, const DyingPointer& piece) {
  look_then(
      names_.store(), lifetime_.token(), [this, ending] { look_at_dead(*ending); },
      [this, ending, piece] {
        grants_dead(*ending, *piece);
        endings_.died(*ending, *piece);
      });
}

// What grants_dead() reads; until then they count as dying.
void Layouts::look_at_dead(const Ending& ending) {
  static_cast<void>(names_.get(ending.inode));
  if (ending.writes()) static_cast<void>(space_.tail_dirty(ending.inode));
}

void Layouts::grants_dead(Ending& ending, const DyingGrants& piece) {
  const uint64_t inode = ending.inode;
  table_.end_death(piece);
  ++ending.dead;
  if (piece.writable_end > 0) writer_dead(ending, piece);
  recalls_.settle(ending.client, inode);
  // Once for all of them: it takes turns of the inode.
  if (ending.all_dead() && ending.writes() && space_.tail_dirty(inode)) {
    queue_.exclusive(
        inode, [this, inode](InodeQueue::Turn turn) { space_.clean_tail(inode, [turn](nfs4::Status) {}); });
  }
  if (table_.in_use(inode) || recaller_.is_open(inode)) return;
  const auto present = names_.get(inode);
  if (present && ((*present)->flags & kInodeOrphan) != 0) return reap(inode);
  tidy_up(inode);
}

void Layouts::writer_dead(const Ending& ending, const DyingGrants& piece) {
  const uint64_t inode = ending.inode;
  const bool by_force = ending.cause == Ending::Cause::kByForce;
  std::vector<ByteRange> written;
  for (const HeldGrant& grant : piece.grants) {
    if (grant.writable) written.push_back(grant.file);
  }
  space_.left_behind(inode, written);
  if (by_force) space_.rest(inode);
  Batch forgotten;
  if (!table_.writable(inode)) Records::erase(forgotten, RecordKind::kLayout, writing_record_key(inode));
  // By force: it may have written what it never told us, up to now.
  if (by_force) {
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
  std::deque<std::pair<EndingPointer, DyingPointer>> dying;  // out of their layouts
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
        fences_.erase(client->client);
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
    const auto ending = std::make_shared<Ending>(
        Ending{.client = client.client, .inode = inode, .cause = Ending::Cause::kByForce});
    ending->pieces = begin_death(client.client, inode, table_.give_back(layout, kAllOfIt, IoMode::kAny));
    records_.gone(layout, first_of(ending->pieces));
    table_.erase(inode, client.client);
    if (ending->pieces.empty()) ending->pieces.push_back(std::make_shared<const DyingGrants>());
    for (const DyingPointer& piece : ending->pieces) client.dying.emplace_back(ending, piece);
  }
}

void Layouts::forget_pieces(Forgetting& client, size_t count) {
  const EventLoop::Step step(loop_, "client-layouts", client.client);
  for (; count > 0; --count) {
    const auto [ending, piece] = client.dying.front();
    client.dying.pop_front();
    if (piece != ending->pieces.front()) records_.withdrawn(ending->inode, ending->client, piece->grants);
    grants_dead(*ending, *piece);
  }
}

}  // namespace pnfsrdma::mds

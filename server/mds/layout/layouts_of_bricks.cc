// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "server/mds/layout/layouts.h"
#include "server/mds/layout/sweep.h"
#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"

// A brick's life, as far as layouts are concerned: lost, back, ready.
namespace pnfsrdma::mds {

namespace {
// Tails that are zeroed at a time, of all that are found dirty when a brick comes back.
constexpr size_t kTailsAtATime = 64;
// Records of files that are read in one turn.
constexpr size_t kRecordsAtATime = 1024;

std::optional<InodeId> inode_of_record(std::string_view key) {
  const std::string_view number = key.substr(Records::key(RecordKind::kLayout, {}).size());
  if (number.size() != sizeof(InodeId)) return std::nullopt;
  return load_big_endian<InodeId>(as_bytes(number).data());
}

}  // namespace

void Layouts::later(std::function<void()> task) {
  loop_.post(lifetime_.guard([task = std::move(task)] { task(); }));
}

bool Layouts::on_lost_brick(const HeldLayout& layout) const {
  return std::ranges::any_of(layout.grants(), [this](const HeldGrant& grant) {
    return lost_.contains(bricks_.at(grant.logical).number());
  });
}

// The handles live on at a brick that only lost its connection to us: withdraw() waits until its sessions
// are closed.
void Layouts::on_brick_lost(BrickNumber brick) {
  const auto [at, fresh] = lost_.try_emplace(brick);
  Loss& loss = at->second;
  loss.ending = {};
  // Once more while its end goes on: nothing new can have come from it.
  if (!fresh) return;
  loss.clients = table_.clients();
  lost_slice(brick);
}

void Layouts::lost_slice(BrickNumber brick) {
  const EventLoop::Step step(loop_, "brick-lost");
  Loss& loss = lost_.at(brick);
  const size_t answered = endings_.brick_lost(brick, loss.ending, kLayoutsPerSlice);
  const size_t looked = revoke_of_lost(loss, brick, kLayoutsPerSlice - answered);
  if (answered + looked >= kLayoutsPerSlice) return later([this, brick] { lost_slice(brick); });
  const auto then = std::move(loss.then);
  lost_.erase(brick);
  if (then) then();
}

size_t Layouts::revoke_of_lost(Loss& loss, BrickNumber brick, size_t most) {
  size_t looked = 0;
  while (looked < most && !loss.clients.empty()) {
    const uint64_t client = loss.clients.back();
    const size_t asked = most - looked;
    const std::vector<uint64_t> files = table_.files_of_client(client, asked, loss.file);
    for (const uint64_t inode : files) {
      if (looked >= most) break;
      loss.file = inode;
      const HeldLayout* layout = table_.find(inode, client);
      looked += 1 + (layout == nullptr ? 0 : layout->grants().size() / kGrantsAsALayout);
      const bool there = layout != nullptr && std::ranges::any_of(layout->grants(), [&](const auto& grant) {
                           return bricks_.at(grant.logical).number() == brick;
                         });
      if (there) revoke(client, inode);
    }
    if (looked >= most) break;
    loss.clients.pop_back();
    loss.file = 0;
  }
  return looked;
}

void Layouts::end_lost(uint64_t inode, uint64_t client) {
  if (lost_.empty()) return;
  const HeldLayout* layout = table_.find(inode, client);
  if (layout != nullptr && on_lost_brick(*layout)) revoke(client, inode);
}

// Before its holders are asked: some need not be. The others are asked, and their slice comes meanwhile.
void Layouts::end_some_lost(uint64_t inode) {
  if (lost_.empty()) return;
  size_t cost = 0;
  for (const uint64_t client : table_.clients_of_file(inode)) {
    const HeldLayout* layout = table_.find(inode, client);
    cost += 1 + (layout == nullptr ? 0 : layout->grants().size() / kGrantsAsALayout);
    if (cost > kLayoutsPerSlice) return;
    end_lost(inode, client);
  }
}

// Whether handles of the client are still dying on a brick that can answer.
bool Layouts::dying_within_reach(uint64_t client, uint64_t inode) {
  return table_.any_dying(inode, client, [this](const DyingGrants& piece) {
    const BrickDevice* const brick = bricks_.find(piece.brick);
    return brick != nullptr && brick->usable();
  });
}

void Layouts::zero_tails(BrickNumber brick, std::function<void(bool)> done) {
  auto begin = [this, brick, done = std::move(done)] {
    touch_interrupted_files([this, brick, done] { zero_dirty_tails(brick, done); });
  };
  // What an earlier beginning waits for is void.
  if (const auto loss = lost_.find(brick); loss != lost_.end()) {
    loss->second.then = std::move(begin);
    return;
  }
  begin();
}

void Layouts::sweep(const std::shared_ptr<Sweep>& sweep) {
  if (std::exchange(sweep->going, true)) return;
  const EventLoop::Step step(loop_, "sweep");
  // What ends at once, too, is so much a turn and no more.
  for (size_t begun = 0; begun < kTailsAtATime && sweep->next < sweep->files.size(); ++begun) {
    if (sweep->running == kTailsAtATime) break;
    ++sweep->running;
    sweep->each(sweep->files[sweep->next++], [this, sweep](nfs4::Status status) {
      sweep->good = sweep->good && status == nfs4::Status::kOk;
      --sweep->running;
      if (!sweep->going) later([this, sweep] { this->sweep(sweep); });
    });
  }
  sweep->going = false;
  if (sweep->next < sweep->files.size()) {
    if (sweep->running < kTailsAtATime) later([this, sweep] { this->sweep(sweep); });
  } else if (sweep->running == 0 && sweep->done) {
    std::exchange(sweep->done, nullptr)(sweep->good);
  }
}

// All of them, page by page, behind those it has.
void Layouts::gather(const std::shared_ptr<Sweep>& into, Page page, std::function<void(bool)> done,
                     InodeId from) {
  const auto read = [page, from] { return page(from, kRecordsAtATime); };
  read_then(names_.store(), lifetime_.token(), read,
            [this, into, page, done = std::move(done)](const Result<std::vector<InodeId>>& found) {
              if (!found) return done(false);
              into->files.insert(into->files.end(), found->begin(), found->end());
              if (found->size() < kRecordsAtATime) return done(true);
              later([this, into, page, done] { gather(into, page, done, into->files.back() + 1); });
            });
}

void Layouts::gather_ahead(const std::shared_ptr<Sweep>& into) {
  const auto page = [this](InodeId from, size_t most) -> Result<std::vector<InodeId>> {
    return space_.ahead().page(from, most);
  };
  gather(into, page, [this, into](bool) { sweep(into); });
}

void Layouts::zero_dirty_tails(BrickNumber brick, std::function<void(bool)> done) {
  auto work = std::make_shared<Sweep>();
  work->each = [this, brick](InodeId inode, const Done& one) { zero_tail(brick, inode, one); };
  work->done = std::move(done);
  const auto page = [this](InodeId from, size_t most) { return space_.extents().dirty_tails(from, most); };
  gather(work, page, [this, work](bool all) {
    if (!all) return work->done(false);
    sweep(work);
  });
}

void Layouts::zero_tail(BrickNumber brick, uint64_t inode, const Done& done) {
  // What of a tail is on a brick that is away is zeroed when that comes back, and nobody can write there or
  // grow the file over it before.
  const auto dirty_from = [this, inode]() -> std::optional<uint64_t> {
    const auto present = names_.get(inode);
    if (!present || !space_.tail_dirty(inode)) return std::nullopt;
    return (*present)->size;
  };
  queue_.exclusive(inode, [this, brick, inode, dirty_from, done](const InodeQueue::Turn& turn) {
    read_then(names_.store(), lifetime_.token(), dirty_from,
              [this, brick, inode, turn, done](std::optional<uint64_t> size) {
                if (!size) return done(nfs4::Status::kOk);
                zero_tail_behind(brick, inode, *size, turn, done);
              });
  });
}

void Layouts::zero_tail_behind(BrickNumber brick, uint64_t inode, uint64_t size, const InodeQueue::Turn& turn,
                               const Done& done) {
  space_.is_tail_of(brick, inode, size, lifetime_.guard([this, inode, turn, done](bool ours) {
    if (!ours) return done(nfs4::Status::kOk);
    // Beside writers who go on there, what others had left when the last run ended is not known any more. (Without any
    // all of it is zeroed.)
    if (table_.writable(inode)) space_.tail_unknown(inode);
    space_.clean_tail(inode, [turn, done](nfs4::Status status) { done(status); });
  }));
}

// Files somebody was writing when the last run ended: what was written without LAYOUTCOMMIT must show as a
// change. No brick is ready before all have been touched: who writes then has a record of his own.
void Layouts::touch_interrupted_files(std::function<void()> then) {
  if (touched_interrupted_) return then();
  touch_waiters_.push_back(std::move(then));
  if (touch_waiters_.size() == 1) touch_slice();
}

void Layouts::touch_slice() {
  read_then(
      names_.store(), lifetime_.token(), [this] { return next_interrupted(); },
      [this](const Result<std::vector<std::string>>& records) {
        const EventLoop::Step step(loop_, "interrupted-writers");
        if (!records)
          log_error("layouts", "layout-records-unreadable error=\"{}\"", records.error().to_string());
        touch_files(records.value_or(std::vector<std::string>()));
      });
}

// Only reads: the next records, and the files they name.
Result<std::vector<std::string>> Layouts::next_interrupted() {
  std::vector<std::string> keys;
  const auto visit = [&](std::string_view key, std::string_view) {
    keys.emplace_back(key);
    return keys.size() < kLayoutsPerSlice;
  };
  TRY(names_.store().scan(Records::key(RecordKind::kLayout, {}), next_interrupted_, visit));
  for (const std::string& key : keys) {
    if (const auto inode = inode_of_record(key)) static_cast<void>(names_.get(*inode));
  }
  return keys;
}

void Layouts::touch_files(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const auto inode = inode_of_record(key);
    // Still being written, by somebody whose layout is kept: his end will show.
    if (!inode || table_.writable(*inode)) continue;
    Batch forgotten;
    forgotten.erase(key);
    touch(*inode, forgotten);
  }
  if (keys.size() == kLayoutsPerSlice) {
    next_interrupted_ = keys.back() + '\0';  // the next key there can be
    return later([this] { touch_slice(); });
  }
  touched_interrupted_ = true;
  for (const auto& then : std::exchange(touch_waiters_, {})) then();
}

void Layouts::on_brick_ready() {
  // What an earlier run left behind, and what it gave ahead of files that nobody has open any more or that we
  // could not reach.
  reap_orphans();
  auto tidying = std::make_shared<Sweep>();
  tidying->each = [this](InodeId inode, const Done& one) {
    if (recaller_.is_open(inode) || table_.in_use(inode)) {
      return with_inode(inode, [this, one](const Outcome<InodePointer>& present) {
        if (present) space_.count_ahead(**present);
        one(nfs4::Status::kOk);
      });
    }
    tidy_up(inode, [one] { one(nfs4::Status::kOk); });
  };
  gather_ahead(tidying);
}

void Layouts::reap_orphans() {
  auto reaping = std::make_shared<Sweep>();
  reaping->each = [this](InodeId inode, const Done& one) {
    reap(inode);
    one(nfs4::Status::kOk);
  };
  const auto page = [this](InodeId from, size_t most) -> Result<std::vector<InodeId>> {
    auto orphans = names_.orphans(from, most);
    if (!orphans) return fail(EIO, "reading the files that are to go");
    return *std::move(orphans);
  };
  // What cannot be read now goes when the next brick is ready.
  gather(reaping, page, [this, reaping](bool all) {
    if (all) sweep(reaping);
  });
}

}  // namespace pnfsrdma::mds

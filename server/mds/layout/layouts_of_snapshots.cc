// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "server/mds/layout/layouts.h"
#include "server/mds/layout/sweep.h"
#include "server/mds/meta/read_then.h"

// What a snapshot needs of layouts: nobody who writes while it is taken, nobody who reads when it goes.
namespace pnfsrdma::mds {

namespace {
constexpr ByteRange kEveryByte{0, kEndOfFile};
constexpr Milliseconds kEndAgain{100};
// Files of a snapshot whose layouts end between two looks for them.
constexpr size_t kFilesAtATime = 1024;
}  // namespace

// First all who write, then what they leave: a tail is clean when its writer has gone.
void Layouts::stop_writers(std::function<void()> done) {
  stopped_ = true;
  auto clearing = std::make_shared<Sweep>();
  clearing->each = [this](InodeId inode, const Done& one) { clear_file(inode, one); };
  auto tidying = std::make_shared<Sweep>();
  tidying->each = [this](InodeId inode, const Done& one) { tidy_file(inode, one); };
  tidying->done = [done = std::move(done)](bool) { done(); };
  clearing->done = [this, tidying](bool) {
    const auto page = [this](InodeId from, size_t most) { return space_.extents().dirty_tails(from, most); };
    gather(tidying, page, [this, tidying](bool) { gather_ahead(tidying); });
  };
  const auto page = [this](InodeId from, size_t most) -> Result<std::vector<InodeId>> {
    return table_.written_files(from, most);
  };
  gather(clearing, page, [this, clearing](bool) { gather_ahead(clearing); });
}

void Layouts::clear_file(uint64_t inode, const Done& done) {
  clear_writers(inode, 0, 0, [this, inode, done](bool) {
    with_inode(inode, [this, inode, done](const Outcome<InodePointer>& present) {
      if (!present || !space_.ahead().contains(inode)) return done(nfs4::Status::kOk);
      clear(inode, {kept_end((*present)->size), kEndOfFile}, 0, [done](bool) { done(nfs4::Status::kOk); });
    });
  });
}

void Layouts::tidy_file(uint64_t inode, const Done& done) {
  queue_.exclusive(inode, [this, inode, done](const InodeQueue::Turn& turn) {
    space_.trim(inode, [turn, done](nfs4::Status status) { done(status); });
  });
}

void Layouts::is_still(std::function<void(bool)> done) {
  // By handles that we do not know somebody may write to a brick that has not been claimed since we started.
  if (!bricks_.ready()) return done(false);
  if (table_.written() > 0 || space_.ahead().size() > 0 || space_.any_rests()) return done(false);
  read_then(
      names_.store(), lifetime_.token(), [this] { return space_.extents().dirty_tails(0, 1); },
      [done = std::move(done)](const Result<std::vector<InodeId>>& tails) { done(tails && tails->empty()); });
}

// Whoever was not asked yet, among many files, keeps what he has.
void Layouts::revoke_writers(Told told, std::function<bool()> wanted, std::function<void()> done) {
  auto ending = std::make_shared<Sweep>();
  ending->each = [this, told = std::move(told), wanted = std::move(wanted)](InodeId inode, const Done& one) {
    const auto chosen = [this, inode, told, wanted](const HeldLayout& layout) {
      const bool keeps =
          wanted() && recalls_.progress(layout.client(), inode, kEveryByte) != Recalls::Progress::kNone;
      if (keeps) told(layout.client(), inode);
      return keeps;
    };
    end_holders(inode, chosen, Join([one] { one(nfs4::Status::kOk); }));
  };
  ending->done = [done = std::move(done)](bool) { done(); };
  const auto page = [this](InodeId from, size_t most) -> Result<std::vector<InodeId>> {
    return table_.written_files(from, most);
  };
  gather(ending, page, [this, ending](bool) { gather_ahead(ending); });
}

void Layouts::end_snapshot(SnapshotNumber snapshot, std::function<void()> done) {
  const auto in_snapshot = [snapshot](uint64_t inode) { return snapshot_of(inode) == snapshot; };
  auto ending = std::make_shared<Sweep>();
  ending->files = table_.files_of_snapshot(snapshot, kFilesAtATime);
  // Somebody's answer may be on its way: it brings a layout, or lets go of its turn.
  if (ending->files.empty() && !queue_.any(in_snapshot)) return done();
  ending->each = [this](InodeId inode, const Done& one) { end_file(inode, one); };
  ending->done = [this, snapshot, done = std::move(done)](bool) {
    loop_.after(kEndAgain, lifetime_.guard([this, snapshot, done] { end_snapshot(snapshot, done); }));
  };
  sweep(ending);
}

void Layouts::end_file(uint64_t inode, const Done& done) {
  end_holders(inode, [](const HeldLayout&) { return true; }, Join([done] { done(nfs4::Status::kOk); }));
}

// One slice a turn, whatever the file.
void Layouts::end_holders(uint64_t inode, const Chosen& chosen, const Join& join) {
  loop_.at_own_turn(lifetime_.guard([this, inode, chosen, join] {
    const EventLoop::Step step(loop_, "snapshot-layouts");
    size_t cost = 0;
    for (const uint64_t client : table_.clients_of_file(inode)) {
      const HeldLayout* const layout = table_.find(inode, client);
      if (layout == nullptr) continue;
      if (cost >= kLayoutsPerSlice) return end_holders(inode, chosen, join);
      if (!chosen(*layout)) continue;
      cost += 1 + layout->grants().size() / kGrantsAsALayout;
      revoke_layout(client, inode, [end = join.part()](std::optional<size_t>) { end(); });
    }
    join.end();
  }));
}

}  // namespace pnfsrdma::mds

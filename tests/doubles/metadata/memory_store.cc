// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/metadata/memory_store.h"

#include <algorithm>
#include <cerrno>

#include "shared/base/check.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

MemoryStore::MemoryStore(EventLoop& loop, Syncing syncing) : loop_(loop), syncing_(syncing) {}

MemoryStore::~MemoryStore() = default;

std::unique_ptr<KeyValueStore> MemoryStore::still() {
  auto copy = std::make_unique<MemoryStore>(loop_);
  copy->content_ = content_;
  copy->held_ = views_held_;
  return copy;
}

const MemoryStore::Content* MemoryStore::content(SnapshotNumber at) const {
  if (at == 0) return &content_;
  const auto found = checkpoints_.find(at);
  return found == checkpoints_.end() ? nullptr : &found->second;
}

Result<std::optional<std::string>> MemoryStore::read(SnapshotNumber at, std::string_view key, Reach reach) {
  if (fetch_time_ && reach == Reach::kMemory) return fail(kNotAtHand, "the store is cold");
  const Content* rows = content(at);
  if (rows == nullptr) return fail(EIO, "there is no such checkpoint");
  const auto found = rows->find(key);
  if (found == rows->end()) return std::nullopt;
  return found->second;
}

Result<> MemoryStore::walk(SnapshotNumber at, std::string_view prefix, std::string_view from,
                           const Visitor& visitor, Reach reach, std::string& reached) {
  while (held_ && *held_) yield_thread();
  if (fetch_time_ && reach == Reach::kMemory) {
    reached = std::max(prefix, from);
    return fail(kNotAtHand, "the store is cold");
  }
  const Content* rows = content(at);
  if (rows == nullptr) return fail(EIO, "there is no such checkpoint");
  auto row = rows->lower_bound(std::max(prefix, from));
  while (row != rows->end() && row->first.starts_with(prefix)) {
    // A copy: the visitor may commit, and what it erases must not be this entry's key under its feet.
    const std::string key = row->first;
    const std::string value = row->second;
    if (!visitor(key, value)) break;
    row = rows->upper_bound(key);
  }
  return {};
}

Result<Sequence> MemoryStore::write(const Batch& batch, CommitKind kind) {
  if (stalls_ > 0) {
    --stalls_;
    return fail(EAGAIN, "the store is told to stall");
  }
  apply(batch, content_);
  unsynced_.push_back(batch);
  ++last_;
  if (kind == CommitKind::kNamespace) last_namespace_ = last_;
  if (writes_at_turn_end_ && !std::exchange(unwritten_, true)) {
    loop_.at_turn_end([this, alive = std::weak_ptr(alive_)] {
      if (alive.expired()) return;
      unwritten_ = false;
      for (const auto& callback : std::exchange(write_waiters_, {})) callback();
    });
  }
  plan_sync();
  return last_;
}

// What is there now, and there later: commits in between make it stale.
Brought MemoryStore::bring(const Wanted& wanted) const {
  Brought brought;
  const Content* rows = content(wanted.snapshot);
  if (rows == nullptr) {
    brought.outcome = fail(EIO, "there is no such checkpoint");
    return brought;
  }
  auto at = rows->lower_bound(wanted.key);
  if (!wanted.prefix) {
    if (at != rows->end() && at->first == wanted.key) brought.rows.emplace_back(*at);
    return brought;
  }
  for (; at != rows->end() && at->first.starts_with(*wanted.prefix); ++at) {
    if (brought.rows.size() == rows_fetched) {
      brought.next = at->first;
      break;
    }
    brought.rows.emplace_back(*at);
  }
  return brought;
}

void MemoryStore::fetch(std::vector<Wanted> wanted, Arrived done) {
  std::vector<Brought> all;
  for (const Wanted& one : wanted) all.push_back(bring(one));
  const uint64_t number = ++last_fetch_;
  fetches_.emplace(number, std::move(done));
  auto deliver = [this, alive = std::weak_ptr(alive_), number, all = std::move(all)] {
    if (!alive.expired()) fetches_.extract(number).mapped()(all);
  };
  const Milliseconds time = fetch_time_.value_or(Milliseconds(0));
  if (time.count() == 0) return loop_.post(std::move(deliver));
  loop_.after(time, std::move(deliver));
}

void MemoryStore::when_synced(Sequence sequence, std::function<void()> callback) {
  waiters_.add(sequence, std::move(callback));
  plan_sync();
}

Result<> MemoryStore::sync() {
  for (const Batch& batch : unsynced_) apply(batch, synced_content_);
  unsynced_.clear();
  synced_ = last_;
  plan_callbacks();
  return {};
}

void MemoryStore::crash(size_t keep) {
  CHECK(keep <= unsynced_.size());
  for (size_t i = 0; i < keep; ++i) apply(unsynced_[i], synced_content_);
  unsynced_.clear();
  content_ = synced_content_;
  waiters_.clear();
  last_ = last_namespace_ = synced_ = 0;
  ++crashes_;
  makes_copy_ = false;
  forget_checkpoint();
}

void MemoryStore::post(std::function<void()> work) {
  loop_.post([this, alive = std::weak_ptr(alive_), crashes = crashes_, work = std::move(work)] {
    if (!alive.expired() && crashes == crashes_) work();
  });
}

void MemoryStore::prepare_checkpoint(std::function<void()> done) {
  post(std::move(done));
}

void MemoryStore::make_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) {
  if (makes_copy_) return post([done = std::move(done)] { done(fail(EBUSY, "a snapshot is being taken")); });
  if (checkpoints_.contains(number))
    return post([done = std::move(done)] { done(fail(EEXIST, "there is such a checkpoint")); });
  makes_copy_ = true;
  post([this, number, done = std::move(done)] {
    makes_copy_ = false;
    checkpoints_[number] = content_;
    done({});
  });
}

void MemoryStore::drop_checkpoint(SnapshotNumber number, std::function<void(Result<>)> done) {
  checkpoints_.erase(number);
  post([done = std::move(done)] { done({}); });
}

Result<> MemoryStore::keep_checkpoints(const std::set<SnapshotNumber>& kept) {
  std::erase_if(checkpoints_, [&](const auto& one) { return !kept.contains(one.first); });
  return {};
}

void MemoryStore::apply(const Batch& batch, Content& content) {
  batch.for_each([&](std::string_view key, std::string_view value) { content[std::string(key)] = value; },
                 [&](std::string_view key) {
                   const auto found = content.find(key);
                   if (found != content.end()) content.erase(found);
                 });
}

void MemoryStore::plan_sync() {
  if (syncing_ == Syncing::kManual) return plan_callbacks();
  if (sync_planned_) return;
  sync_planned_ = true;
  loop_.at_turn_end([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    sync_planned_ = false;
    [[maybe_unused]] const Result<> always_succeeds = sync();
  });
}

void MemoryStore::plan_callbacks() {
  if (callbacks_planned_ || waiters_.empty()) return;
  callbacks_planned_ = true;
  loop_.at_turn_end([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    callbacks_planned_ = false;
    waiters_.run(synced_);
  });
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/recalls.h"

#include <algorithm>
#include <utility>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {
// The pause before a recall that was answered DELAY, or not at all, is sent again; or that could not be put on record.
constexpr Milliseconds kRetryAfterDelay{20};
constexpr Milliseconds kRetryUnreachable{1000};
// Each is an operation that goes on, and perhaps what comes behind it in its COMPOUND.
constexpr size_t kDoneInATurn = 64;
}  // namespace

Recalls::Recalls(EventLoop& loop, LayoutTable& table, LayoutRecaller& recaller, Milliseconds lease,
                 Powers powers)
    : loop_(loop), table_(table), recaller_(recaller), lease_(lease), powers_(std::move(powers)) {}

Recalls::~Recalls() {
  lifetime_.end();
  for (auto& [key, pending] : pending_) {
    loop_.cancel(pending.lease_timer);
    loop_.cancel(pending.retry_timer);
  }
}

void Recalls::demand(uint64_t client, uint64_t inode, const ByteRange& range, std::function<void()> done) {
  if (!table_.reachable(inode, range, client)) {
    done();
    return;
  }
  const Key key{client, inode};
  Pending& pending = pending_[key];
  pending.demands.push_back({range, std::move(done)});
  if (!pending.active) begin(key, pending);
}

void Recalls::begin(const Key& key, Pending& pending) {
  HeldLayout* layout = table_.find(key.second, key.first);
  if (layout == nullptr) return;  // only dying grants are left: settle() comes with the brick's answer
  ByteRange range{kEndOfFile, 0};
  for (const Demand& demand : pending.demands) {
    if (!table_.reachable(key.second, demand.range, key.first)) continue;  // it will hear of that in its turn
    range = {std::min(range.begin, demand.range.begin), std::max(range.end, demand.range.end)};
  }
  if (range.empty()) return;
  range = layout->rounded_out(range);
  if (!layout->holds(range, IoMode::kAny)) return;  // likewise
  pending.active = true;
  pending.number = next_number_++;
  pending.recorded = false;
  pending.answered = false;
  pending.message = {.client = key.first, .inode = key.second};
  pending.message.export_id = layout->export_id();
  pending.message.old_handle = layout->old_handle();
  pending.message.generation = layout->generation();
  pending.message.offset = range.begin;
  pending.message.length = range.end == kEndOfFile ? UINT64_MAX : range.length();
  // The recall itself is a new version of the stateid (12.5.3).
  pending.message.stateid = layout->recall();
  pending.lease_timer = loop_.after(lease_, [this, key, number = pending.number] { expire(key, number); });
  send(key);
}

void Recalls::send(const Key& key) {
  Pending& pending = pending_.at(key);
  if (!put_on_record(key, pending)) return send_again(key, pending, kRetryUnreachable);
  ++sent_;
  recaller_.recall_layout(pending.message,
                          lifetime_.guard([this, key, number = pending.number](RecallAnswer answer) {
                            answered(key, number, answer);
                          }));
}

bool Recalls::put_on_record(const Key& key, Pending& pending) {
  // Null: it has ended meanwhile, and so will the recall.
  const HeldLayout* const layout = table_.find(key.second, key.first);
  pending.recorded =
      pending.recorded || layout == nullptr || outlived(key, pending) || powers_.record(*layout);
  return pending.recorded;
}

void Recalls::send_again(const Key& key, Pending& pending, Milliseconds pause) {
  pending.retry_timer = loop_.after(pause, [this, key, number = pending.number] {
    if (find(key, number) != nullptr) send(key);
  });
}

Recalls::Pending* Recalls::find(const Key& key, uint64_t number) {
  const auto found = pending_.find(key);
  if (found == pending_.end() || !found->second.active || found->second.number != number) return nullptr;
  return &found->second;
}

void Recalls::answered(const Key& key, uint64_t number, RecallAnswer answer) {
  Pending* pending = find(key, number);
  if (pending == nullptr) return;
  switch (answer) {
    case RecallAnswer::kAccepted:
      pending->answered = true;
      return;
    case RecallAnswer::kNoMatching:
      pending->answered = true;
      // It has none of that name; it may have the next one.
      if (!outlived(key, *pending))
        powers_.forget(key.first, key.second, range_of(pending->message.offset, pending->message.length));
      return;
    case RecallAnswer::kDelay:
    case RecallAnswer::kUnreachable: {
      // The same recall once more, under the same seqid: the client has not taken note of it.
      send_again(key, *pending, answer == RecallAnswer::kDelay ? kRetryAfterDelay : kRetryUnreachable);
      return;
    }
  }
}

void Recalls::expire(const Key& key, uint64_t number) {
  if (find(key, number) == nullptr) return;
  log_warning("layouts", "layout-revoked client={} inode={} reason=recall-not-honoured", key.first,
              key.second);
  powers_.revoke(key.first, key.second);
}

Recalls::Progress Recalls::progress(uint64_t client, uint64_t inode, const ByteRange& range) const {
  const auto found = pending_.find({client, inode});
  if (found == pending_.end() || !found->second.active) return Progress::kNone;
  const Pending& pending = found->second;
  if (!range_of(pending.message.offset, pending.message.length).overlaps(range)) return Progress::kNone;
  return pending.answered ? Progress::kAnswered : Progress::kUnanswered;
}

void Recalls::end(const Key& key, Pending& pending) {
  pending.active = false;
  loop_.cancel(pending.lease_timer);
  loop_.cancel(pending.retry_timer);
  HeldLayout* layout = table_.find(key.second, key.first);
  if (layout != nullptr && !outlived(key, pending)) layout->recall_completed(pending.message.stateid.seqid);
}

// The client has given back what it was asked for, and a handle leads there still: one that it was granted while
// the recall was on its way, and that reaches beyond it. Only a recall of all of that gets it back.
bool Recalls::outgrown(const Key& key, const ByteRange& asked) const {
  const HeldLayout* layout = table_.find(key.second, key.first);
  return layout != nullptr && !layout->holds(asked, IoMode::kAny) && layout->rounded_out(asked) != asked;
}

bool Recalls::outlived(const Key& key, const Pending& pending) const {
  const HeldLayout* const layout = table_.find(key.second, key.first);
  return layout != nullptr && layout->stateid().other != pending.message.stateid.other;
}

void Recalls::settle(uint64_t client, uint64_t inode) {
  // Who has waited goes on, and may end what others wait for: those go on behind him, not inside.
  if (in_done_) return settle_later(client, inode);
  const Key key{client, inode};
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  Pending& pending = found->second;
  if (pending.active) {
    const ByteRange asked = range_of(pending.message.offset, pending.message.length);
    if (!table_.reachable(inode, asked, client) || outgrown(key, asked) || outlived(key, pending))
      end(key, pending);
  }
  std::vector<Demand> finished;
  std::erase_if(pending.demands, [&](Demand& demand) {
    if (finished.size() == kDoneInATurn || table_.reachable(inode, demand.range, client)) return false;
    finished.push_back(std::move(demand));
    return true;
  });
  if (finished.size() == kDoneInATurn) settle_later(client, inode);
  if (!pending.active && !pending.demands.empty()) begin(key, pending);
  if (!pending.active && pending.demands.empty()) pending_.erase(found);
  // Last: what waits may start new recalls.
  in_done_ = true;
  for (const Demand& demand : finished) demand.done();
  in_done_ = false;
}

// A demand counts until it has been told: if the client has a layout there again by then, that is recalled.
void Recalls::settle_later(uint64_t client, uint64_t inode) {
  loop_.at_next_turn(lifetime_.guard([this, client, inode] { settle(client, inode); }));
}

}  // namespace pnfsrdma::mds

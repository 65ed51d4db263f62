// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/watchers.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "server/brickd/limits.h"

namespace pnfsrdma::brick {

bool EventInbox::open() {
  if (!wake_) wake_ = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  return is_open();
}

void EventInbox::calm() {
  uint64_t count;
  (void)!::read(wake_.get(), &count, sizeof count);
}

size_t Watchers::class_of(const Watch& watch) {
  return static_cast<size_t>(std::bit_width(watch.end - watch.begin)) - 1;
}

WatchStatus Watchers::add(EventInbox& inbox, const WatchCall& call, ByteSpan memory) {
  auto table = table_.lock();
  if (inbox.watches_.contains(call.watch)) return WatchStatus::kInvalid;
  // What is owed of watches that have ended counts, too: it is not taken back, and must not grow without an end.
  if (inbox.watches_.size() >= kWatchesPerConnection || inbox.unsent_.size() >= kUnsentToWatch ||
      table->watches >= kWatchesMax)
    return WatchStatus::kLimit;
  const auto begin = reinterpret_cast<uintptr_t>(memory.data()) + call.offset;
  Watch& watch = inbox.watches_[call.watch];
  watch = {
      .inbox = &inbox, .number = call.watch, .grant = call.grant, .begin = begin, .end = begin + call.length};
  inbox.by_grant_.emplace(call.grant, call.watch);
  table->classes[class_of(watch)].emplace(begin, &watch);
  ++table->watches;
  return WatchStatus::kOk;
}

void Watchers::remove(Table& table, Watch& watch) {
  table.classes[class_of(watch)].erase({watch.begin, &watch});
  --table.watches;
}

void Watchers::remove(EventInbox& inbox, uint64_t number) {
  auto table = table_.lock();
  const auto found = inbox.watches_.find(number);
  if (found == inbox.watches_.end()) return;
  remove(*table, found->second);
  const auto [first, last] = inbox.by_grant_.equal_range(found->second.grant);
  inbox.by_grant_.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == number; }));
  inbox.watches_.erase(found);
}

void Watchers::undo(EventInbox& inbox, uint64_t number) {
  remove(inbox, number);
  const auto table = table_.lock();
  std::erase_if(inbox.unsent_, [number](const Event& event) { return event.watch == number; });
  if (inbox.unsent_.empty()) inbox.any_.store(false, std::memory_order_release);
}

void Watchers::grant_ended(EventInbox& inbox, uint64_t grant) {
  auto table = table_.lock();
  const auto [first, last] = inbox.by_grant_.equal_range(grant);
  for (auto entry = first; entry != last; ++entry) {
    const auto found = inbox.watches_.find(entry->second);
    put(found->second, {.kind = EventKind::kEnd});
    remove(*table, found->second);
    inbox.watches_.erase(found);
  }
  inbox.by_grant_.erase(first, last);
}

void Watchers::connection_ended(EventInbox& inbox) {
  auto table = table_.lock();
  for (auto& [number, watch] : inbox.watches_) remove(*table, watch);
  inbox.watches_.clear();
  inbox.by_grant_.clear();
  inbox.unsent_.clear();
}

void Watchers::tell(ByteSpan memory, uint64_t value) {
  const auto begin = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t end = begin + memory.size();
  auto table = table_.lock();
  for (size_t i = 0; i < kClasses; ++i) {
    const Class& all = table->classes[i];
    if (all.empty()) continue;
    const uintptr_t longest = (uintptr_t{2} << i) - 1;
    const auto last = all.lower_bound({end, nullptr});
    for (auto entry = all.lower_bound({begin > longest ? begin - longest : 0, nullptr}); entry != last;
         ++entry) {
      Watch& watch = *entry->second;
      if (watch.end <= begin) continue;
      if (watch.gap_unsent) continue;
      if (watch.unsent >= kUnsentPerWatch || watch.inbox->unsent_.size() >= kUnsentPerConnection) {
        watch.gap_unsent = true;
        put(watch, {.kind = EventKind::kGap});
        continue;
      }
      const uintptr_t from = std::max(begin, watch.begin);
      put(watch, {.kind = EventKind::kSignal,
                  .offset = from - watch.begin,
                  .length = std::min(end, watch.end) - from,
                  .value = value});
    }
  }
}

void Watchers::put(Watch& watch, Event event) {
  EventInbox& inbox = *watch.inbox;
  event.watch = watch.number;
  event.sequence = ++watch.told;
  ++watch.unsent;
  inbox.unsent_.push_back(event);
  if (inbox.any_.exchange(true, std::memory_order_acq_rel)) return;
  const uint64_t one = 1;
  (void)!::write(inbox.fd(), &one, sizeof one);
}

void Watchers::take(EventInbox& inbox, EventsReply& reply) {
  auto table = table_.lock();
  while (!inbox.unsent_.empty() && reply.events.size() < kEventsPerMessage) {
    const Event& event = inbox.unsent_.front();
    // One that has ended is not there any more, or another one has its number: that has been told less.
    const auto watch = inbox.watches_.find(event.watch);
    if (watch != inbox.watches_.end() && watch->second.unsent > 0) {
      --watch->second.unsent;
      if (event.kind == EventKind::kGap) watch->second.gap_unsent = false;
    }
    reply.events.push_back(event);
    inbox.unsent_.pop_front();
  }
  if (inbox.unsent_.empty()) inbox.any_.store(false, std::memory_order_release);
}

}  // namespace pnfsrdma::brick

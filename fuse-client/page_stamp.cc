// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/page_stamp.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::fuse_client {
namespace {

// A question costs about as much as reading so many bytes.
constexpr uint64_t kBytesOfAQuestion = 32 << 10;
constexpr uint64_t kQuestionsMin = 16;
constexpr uint64_t kQuestionsMax = 65536;
constexpr long kNanosecondsMax = 999'999'999;

}  // namespace

bool is_same_time(timespec one, timespec other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

void PageStamp::take_in(const ChangeAnswer& answer, timespec modified) {
  const bool is_first = !change_;
  if (!is_first) {
    const bool overtaken = answer.asked_at < asked_at_ && answer.change < *change_;
    if (overtaken || answer.change == *change_) return;
  }
  // Heard before ours was sent: so `change_` does not count ours yet, and one more is ours.
  const bool is_own =
      !is_first && answer.of_own_change && answer.change == *change_ + 1 && answer.asked_at > heard_at_;
  change_ = answer.change;
  heard_at_ = answer.heard_at;
  asked_at_ = std::max(asked_at_, answer.asked_at);
  if (!is_own) change_to(modified);
}

void PageStamp::doubt() {
  change_to(time_);
}

void PageStamp::dropped(timespec modified) {
  if (is_same_time(time_, modified)) return;
  before_ = std::exchange(time_, modified);
  told_ = foreign_changes_;
}

std::optional<timespec> PageStamp::instead_of(timespec modified, uint64_t size, PageAsker asker) {
  const bool is_news = std::exchange(told_, foreign_changes_) != foreign_changes_;
  if (is_same_time(time_, modified)) return std::nullopt;
  // Our own writes show in it long before the server hears of them.
  if (!is_same_time(std::exchange(modified_, modified), modified)) questions_ = 0;
  const uint64_t worth = std::clamp(size / kBytesOfAQuestion, kQuestionsMin, kQuestionsMax);
  switch (asker) {
    case PageAsker::kReader:
      if (++questions_ <= worth) return time_;
      break;
    case PageAsker::kStat:
      if (!is_news) return time_;
      break;
    case PageAsker::kName:
      return time_;
  }
  before_ = std::exchange(time_, modified);
  return std::nullopt;
}

// The kernel may have taken in the one of before, or that before it.
void PageStamp::change_to(timespec time) {
  ++foreign_changes_;
  while (is_same_time(time, time_) || is_same_time(time, before_)) {
    time.tv_nsec = time.tv_nsec < kNanosecondsMax ? time.tv_nsec + 1 : 0;
  }
  before_ = time_;
  time_ = time;
}

}  // namespace pnfsrdma::fuse_client

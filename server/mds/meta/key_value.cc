// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/key_value.h"

#include <algorithm>

#include "server/mds/meta/request_reads.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {

void Batch::append(const Batch& other) {
  bytes_ += other.bytes_;
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
}

void Batch::add(std::string_view key, std::string_view value, bool is_put) {
  bytes_ += key;
  bytes_ += value;
  entries_.push_back({static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size()), is_put});
}

Result<std::optional<std::string>> KeyValueStore::get(std::string_view key) {
  if (request_ != nullptr) {
    if (const Brought* brought = request_->row(key)) {
      TRY(brought->outcome);
      if (brought->rows.empty()) return std::nullopt;
      return brought->rows.front().second;
    }
  }
  auto found = read(key, Reach::kMemory);
  if (found || found.error().number() != kNotAtHand || request_waits(key, nullptr)) return found;
  return read(key, Reach::kMedium);
}

Result<> KeyValueStore::scan(std::string_view prefix, std::string_view from, const Visitor& visitor) {
  std::string reached;
  for (std::string_view at = std::max(prefix, from);;) {
    if (const Brought* page = request_ != nullptr ? request_->page(prefix, at) : nullptr) {
      TRY(page->outcome);
      for (const auto& [key, value] : page->rows) {
        if (key >= at && !visitor(key, value)) return {};
      }
      if (page->next.empty()) return {};
      at = reached = page->next;
      continue;
    }
    std::string stopped;
    auto walked = walk(prefix, at, visitor, Reach::kMemory, stopped);
    if (walked || walked.error().number() != kNotAtHand) return walked;
    at = reached = std::move(stopped);
    if (request_ != nullptr && request_->page(prefix, at) != nullptr) continue;
    if (request_waits(at, &prefix)) return walked;
    return walk(prefix, at, visitor, Reach::kMedium, stopped);
  }
}

Result<Sequence> KeyValueStore::commit(const Batch& batch, CommitKind kind) {
  // The request took something for absent, or for failed, that is only not read yet.
  if (request_ != nullptr && request_->missed()) return fail(kNotAtHand, "the request is run again");
  auto sequence = write(batch, kind);
  if (!sequence) return sequence;
  if (request_ != nullptr) request_->end_reading();
  if (!pinned_.empty()) {
    batch.for_each([this](std::string_view key, std::string_view) { pinned_.changed(key); },
                   [this](std::string_view key) { pinned_.changed(key); });
  }
  return sequence;
}

bool KeyValueStore::request_waits(std::string_view key, const std::string_view* prefix) {
  ++read_counts_.misses;
  if (request_ != nullptr && request_->want(key, prefix)) return true;
  ++read_counts_.blocking;
  return false;
}

void KeyValueStore::begin_fetch(std::vector<Wanted> wanted, Arrived done) {
  ++read_counts_.fetches;
  fetch(std::move(wanted), [this, begun = steady_now(), done = std::move(done)](auto brought) {
    read_counts_.fetch_latency.add(steady_now() - begun);
    done(std::move(brought));
  });
}

}  // namespace pnfsrdma::mds

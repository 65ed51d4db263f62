// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/pinned_reads.h"

#include <algorithm>

namespace pnfsrdma::mds {

bool Pinned::covers(std::string_view prefix, std::string_view key) const {
  return good() && wanted.prefix == prefix && wanted.key <= key &&
         (brought->next.empty() || key < brought->next);
}

// Under way it may bring any of the keys from its first one on.
bool Pinned::holds(std::string_view key) const {
  return key.starts_with(*wanted.prefix) && key >= wanted.key &&
         (!brought || brought->next.empty() || key < brought->next);
}

void PinnedReads::add(Pinned& pinned) {
  if (pinned.wanted.prefix) {
    scans_.push_back(&pinned);
  } else {
    rows_.emplace(pinned.wanted.key, &pinned);
  }
}

void PinnedReads::remove(Pinned& pinned) {
  if (pinned.wanted.prefix) {
    std::erase(scans_, &pinned);
    return;
  }
  const auto [first, last] = rows_.equal_range(pinned.wanted.key);
  const auto found = std::find_if(first, last, [&](const auto& item) { return item.second == &pinned; });
  if (found != last) rows_.erase(found);
}

void PinnedReads::changed(std::string_view key) {
  const auto [first, last] = rows_.equal_range(key);
  for (auto at = first; at != last; ++at) at->second->stale = true;
  for (Pinned* scan : scans_) {
    if (scan->holds(key)) scan->stale = true;
  }
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/directory_stream.h"

#include <algorithm>

namespace pnfsrdma::fuse_client {

void ListedNames::take(uint64_t cookie, SteadyTime asked_at, std::optional<uint64_t> change,
                       const nfs4::ReadDirectoryResult& result) {
  if (cookie == 0) *this = {};
  if (cookie == 0 && change) {
    so_far_ = {.names = std::unordered_set<std::string>{}, .change = *change, .asked_at = asked_at};
    broken_ = false;
  }
  broken_ = broken_ || cookie != next_ || change != so_far_.change;
  if (broken_) {
    so_far_ = {};
    return;
  }
  if (so_far_.names && so_far_.names->size() + result.entries.size() > DirectoryNames::kPresentMax)
    so_far_.names.reset();
  for (const nfs4::DirectoryEntry& entry : result.entries) {
    if (so_far_.names) so_far_.names->emplace(entry.name);
    next_ = entry.cookie;
  }
  whole_ = result.end;
}

std::optional<ListedNames::Whole> ListedNames::take_whole() {
  if (!whole_ || broken_) return std::nullopt;
  broken_ = true;
  return std::exchange(so_far_, {});
}

const nfs4::DirectoryEntry* DirectoryStream::after(uint64_t cookie) {
  if (!filled_) return nullptr;
  const uint64_t before_next = next_ == 0 ? first_cookie_ : entries_[next_ - 1].cookie;
  if (cookie != before_next) {
    // Somebody has moved (seekdir), or the kernel asks again for what did not fit.
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const nfs4::DirectoryEntry& entry) {
      return entry.cookie == cookie;
    });
    if (cookie == first_cookie_) {
      next_ = 0;
    } else if (found != entries_.end()) {
      next_ = static_cast<size_t>(found - entries_.begin()) + 1;
    } else {
      return nullptr;
    }
  }
  return next_ < entries_.size() ? &entries_[next_++] : nullptr;
}

bool DirectoryStream::at_end(uint64_t cookie) const {
  if (!filled_ || !end_) return false;
  return cookie == (entries_.empty() ? first_cookie_ : entries_.back().cookie);
}

void DirectoryStream::take(uint64_t cookie, nfs4::ReadDirectoryResult result) {
  entries_ = std::move(static_cast<std::vector<nfs4::DirectoryEntry>&>(result.entries));
  first_cookie_ = cookie;
  next_ = 0;
  filled_ = true;
  end_ = result.end;
  verifier_ = result.cookie_verifier;
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/directory_stream.h"

#include <sys/stat.h>

#include <algorithm>

#include "shared/client/file_attributes.h"

namespace pnfsrdma::fuse_client {

ListedEntries listed_entries(const nfs4::ReadDirectoryResult& result, const std::vector<uint64_t>& nodes) {
  ListedEntries entries;
  entries.reserve(result.entries.size());
  for (const nfs4::DirectoryEntry& entry : result.entries) {
    ListedEntry& listed = entries.emplace_back();
    listed.cookie = entry.cookie;
    listed.name = entry.name;
    if (nodes.size() == result.entries.size()) listed.node = nodes[entries.size() - 1];
    if (const auto attributes = client::to_file_attributes(entry.attributes)) {
      listed.file_id = attributes->status.st_ino;
      listed.type = attributes->status.st_mode & S_IFMT;
    }
  }
  return entries;
}

void ListedNames::take(uint64_t cookie, SteadyTime asked_at, std::optional<uint64_t> change,
                       ListedEntries entries, bool end) {
  if (cookie == 0) *this = ListedNames(bytes_max_);
  if (cookie == 0 && change) {
    so_far_ = {.names = std::unordered_set<std::string>{},
               .entries = ListedEntries{},
               .change = *change,
               .asked_at = asked_at};
    broken_ = false;
  }
  broken_ = broken_ || cookie != next_ || change != so_far_.change;
  if (broken_) {
    so_far_ = {};
    return;
  }
  if (!entries.empty()) next_ = entries.back().cookie;
  remember(std::move(entries));
  whole_ = end;
}

void ListedNames::remember(ListedEntries entries) {
  if (so_far_.names && so_far_.names->size() + entries.size() > DirectoryNames::kPresentMax)
    so_far_.names.reset();
  for (ListedEntry& entry : entries) {
    if (so_far_.names) so_far_.names->emplace(entry.name);
    bytes_ += entry.memory();
    if (bytes_ > bytes_max_) so_far_.entries.reset();
    if (so_far_.entries) so_far_.entries->push_back(std::move(entry));
  }
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

const ListedEntry* DirectoryStream::kept_after(uint64_t cookie) {
  const auto& entries = kept_->entries;
  const uint64_t before_next = next_ == 0 ? 0 : entries[next_ - 1].cookie;
  if (cookie == 0) {
    next_ = 0;
  } else if (cookie != before_next) {
    const auto found = std::ranges::find(entries, cookie, &ListedEntry::cookie);
    if (found == entries.end()) {
      rewind();
      return nullptr;
    }
    next_ = static_cast<size_t>(found - entries.begin()) + 1;
  }
  return next_ < entries.size() ? &entries[next_++] : nullptr;
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

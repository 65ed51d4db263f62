// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/extents.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

// Where the range ends; a range that would wrap reaches to the end of all offsets.
uint64_t end_of(uint64_t offset, uint64_t length) {
  return length > UINT64_MAX - offset ? UINT64_MAX : offset + length;
}

bool aligned(uint64_t value) {
  return value % kGrainSize == 0;
}

Result<Extent> read_extent(uint64_t end, std::string_view value) {
  StoredBornExtent stored;
  if (value_version(value) == kBornVersion) {
    TRY_ASSIGN(stored, read_value<StoredBornExtent>(value, "an extent", kBornVersion));
  } else {
    TRY_ASSIGN(const StoredExtent old, read_value<StoredExtent>(value, "an extent"));
    stored = {.logical = old.logical, .length = old.length};
  }
  if (stored.length == 0 || stored.length > end)
    return fail(EUCLEAN, "the metadata store has an impossible extent");
  return Extent{end - stored.length, stored.logical, stored.length, stored.born};
}

void put_extent(Batch& batch, std::string_view key, const Extent& extent) {
  if (extent.born == 0) return put_value(batch, key, StoredExtent{extent.logical, extent.length});
  put_value(batch, key, StoredBornExtent{extent.logical, extent.length, extent.born}, kBornVersion);
}

bool sound(const Extent& extent) {
  constexpr uint64_t kEndMax = kFileSizeMax + 1;
  const bool aligned_all = aligned(extent.file_offset) && aligned(extent.logical) && aligned(extent.length);
  return aligned_all && extent.length > 0 && extent.length <= kEndMax &&
         extent.file_offset <= kEndMax - extent.length && extent.logical <= kEndMax - extent.length;
}

}  // namespace

Result<std::vector<Extent>> Extents::overlapping(InodeId inode, uint64_t offset, uint64_t length,
                                                 size_t most) {
  std::vector<Extent> found;
  if (most == 0 || length == 0 || offset == UINT64_MAX) return found;
  const uint64_t end = end_of(offset, length);
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto extent = read_extent(numbers_of_key(kExtentTag, key).value_or(KeyNumbers{}).second, value);
    if (!extent) {
      outcome = std::unexpected(extent.error());
      return false;
    }
    if (extent->file_offset >= end) return false;
    found.push_back(*extent);
    return found.size() < most;
  };
  TRY(store_.scan(number_key(kExtentTag, inode), number_key(kExtentTag, inode, offset + 1), visit));
  TRY(outcome);
  return found;
}

Result<std::optional<Extent>> Extents::first(InodeId inode) {
  std::optional<Extent> found;
  Result<> outcome;
  TRY(store_.scan(number_key(kExtentTag, inode), {}, [&](std::string_view key, std::string_view value) {
    const auto extent = read_extent(numbers_of_key(kExtentTag, key).value_or(KeyNumbers{}).second, value);
    if (extent) found = *extent;
    if (!extent) outcome = std::unexpected(extent.error());
    return false;
  }));
  TRY(outcome);
  return found;
}

Result<std::vector<Mapping>> Extents::map(InodeId inode, uint64_t offset, uint64_t length, size_t most) {
  TRY_ASSIGN(const std::vector<Extent> extents, overlapping(inode, offset, length, most));
  uint64_t end = end_of(offset, length);
  if (extents.size() == most) end = std::min(end, extents.back().end());
  std::vector<Mapping> pieces;
  uint64_t at = offset;
  for (const Extent& extent : extents) {
    if (extent.file_offset > at) {
      pieces.push_back({at, extent.file_offset - at, std::nullopt});
      at = extent.file_offset;
    }
    const uint64_t piece_end = std::min(extent.end(), end);
    pieces.push_back({at, piece_end - at, extent.logical + (at - extent.file_offset), extent.born});
    at = piece_end;
  }
  if (at < end) pieces.push_back({at, end - at, std::nullopt});
  return pieces;
}

Result<> Extents::scan(const Place& from, const Visitor& visitor) {
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const KeyNumbers numbers = numbers_of_key(kExtentTag, key).value_or(KeyNumbers{});
    const auto extent = read_extent(numbers.second, value);
    if (!extent) outcome = std::unexpected(extent.error().in("inode " + std::to_string(numbers.first)));
    return extent && visitor(numbers.first, *extent);
  };
  TRY(store_.scan(tag_prefix(kExtentTag), number_key(kExtentTag, from.inode, from.end), visit));
  return outcome;
}

void Extents::mark_tail_dirty(Batch& batch, InodeId inode) {
  batch.put(number_key(kTailTag, inode), {});
}

void Extents::mark_tail_clean(Batch& batch, InodeId inode) {
  batch.erase(number_key(kTailTag, inode));
}

Result<bool> Extents::tail_dirty(InodeId inode) {
  TRY_ASSIGN(const std::optional<std::string> found, store_.get(number_key(kTailTag, inode)));
  return found.has_value();
}

Result<std::vector<InodeId>> Extents::dirty_tails(InodeId from, size_t most) {
  std::vector<InodeId> inodes;
  TRY(store_.scan(tag_prefix(kTailTag), number_key(kTailTag, from),
                  [&](std::string_view key, std::string_view) {
                    if (const auto inode = number_of_key(kTailTag, key)) inodes.push_back(*inode);
                    return inodes.size() < most;
                  }));
  return inodes;
}

Result<std::vector<Extent>> ExtentChange::overlapping(uint64_t offset, uint64_t length, size_t most) {
  if (pending_.empty()) return extents_.overlapping(inode_, offset, length, most);
  TRY_ASSIGN(std::vector<Extent> found, extents_.overlapping(inode_, offset, length));
  std::erase_if(found, [&](const Extent& extent) { return pending_.contains(extent.end()); });
  const uint64_t end = end_of(offset, length);
  for (auto at = pending_.upper_bound(offset); at != pending_.end(); ++at) {
    if (at->second && at->second->file_offset < end) found.push_back(*at->second);
  }
  std::ranges::sort(found, {}, &Extent::file_offset);
  found.resize(std::min(found.size(), most));
  return found;
}

Result<> ExtentChange::insert(const Extent& extent) {
  if (!sound(extent)) return fail(EINVAL, "an extent must be whole grains");
  // One grain more on either side: the neighbours it may join with.
  const uint64_t from = extent.file_offset - std::min(extent.file_offset, kGrainSize);
  TRY_ASSIGN(const std::vector<Extent> near, overlapping(from, extent.end() + kGrainSize - from));
  Extent joined = extent;
  for (const Extent& other : near) {
    if (other.end() > extent.file_offset && other.file_offset < extent.end()) {
      return fail(EEXIST, "the file has an extent there");
    }
  }
  for (const Extent& other : near) {
    if (other.born != extent.born) continue;
    const bool before = other.end() == extent.file_offset && other.logical_end() == extent.logical;
    const bool behind = other.file_offset == extent.end() && other.logical == extent.logical_end();
    if (!before && !behind) continue;
    pending_[other.end()] = std::nullopt;
    if (before) {
      joined.file_offset = other.file_offset;
      joined.logical = other.logical;
    }
    joined.length += other.length;
  }
  pending_[joined.end()] = joined;
  growth_ += static_cast<int64_t>(extent.length);
  return {};
}

Result<> ExtentChange::insert_all(std::span<const Extent> extents) {
  if (extents.size() > 2) {
    const uint64_t begin = extents.front().file_offset;
    TRY_ASSIGN(const std::vector<Extent> there, overlapping(begin, extents.back().end() - begin, 1));
    if (!there.empty()) return fail(EEXIST, "the file has an extent there");
    uint64_t end = extents.front().end();
    for (const Extent& extent : extents.subspan(1, extents.size() - 2)) {
      if (!sound(extent) || extent.file_offset < end || extent.end() > extents.back().file_offset)
        return fail(EINVAL, "extents must be whole grains, and in order");
      end = extent.end();
      pending_[end] = extent;
      growth_ += static_cast<int64_t>(extent.length);
    }
  }
  // Those at the ends are joined with what goes on there.
  if (!extents.empty()) TRY(insert(extents.front()));
  if (extents.size() > 1) TRY(insert(extents.back()));
  return {};
}

Result<std::vector<Extent>> ExtentChange::remove(uint64_t offset, uint64_t length, size_t most) {
  const uint64_t end = end_of(offset, length);
  if (!aligned(offset) || (!aligned(end) && end != UINT64_MAX))
    return fail(EINVAL, "a hole must be whole grains");
  TRY_ASSIGN(const std::vector<Extent> extents, overlapping(offset, length, most));
  std::vector<Extent> removed;
  for (const Extent& extent : extents) {
    const uint64_t from = std::max(extent.file_offset, offset);
    const uint64_t to = std::min(extent.end(), end);
    pending_[extent.end()] = std::nullopt;
    if (extent.file_offset < from) {
      pending_[from] = Extent{extent.file_offset, extent.logical, from - extent.file_offset, extent.born};
    }
    if (to < extent.end()) {
      pending_[extent.end()] =
          Extent{to, extent.logical + (to - extent.file_offset), extent.end() - to, extent.born};
    }
    removed.push_back({from, extent.logical + (from - extent.file_offset), to - from, extent.born});
    growth_ -= static_cast<int64_t>(to - from);
  }
  return removed;
}

void ExtentChange::write_to(Batch& batch) const {
  for (const auto& [end, extent] : pending_) {
    const std::string key = number_key(kExtentTag, inode_, end);
    if (extent) {
      put_extent(batch, key, *extent);
    } else {
      batch.erase(key);
    }
  }
}

}  // namespace pnfsrdma::mds

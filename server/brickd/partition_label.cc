// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/partition_label.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "server/brickd/superblock.h"
#include "shared/brick/partition_key.h"

namespace pnfsrdma::brick {
namespace {

format::Label load_label(ByteSpan region, unsigned copy) {
  format::Label label;
  std::memcpy(&label, region.data() + copy * format::kSuperblockStride, sizeof label);
  return label;
}

std::string_view label_name(const format::Partition& partition) {
  const auto end = std::ranges::find(partition.name, '\0');
  return {partition.name.begin(), end};
}

bool is_whole_label(const format::Label& label) {
  return label.magic == format::kMagic && label.version == format::kVersion && label.size == sizeof label &&
         label.checksum == format::label_checksum(label);
}

constexpr uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

Result<PartitionLabel> PartitionLabel::open(MutableByteSpan region, pmem::Persistence& persistence,
                                            uint64_t size) {
  PartitionLabel label(region, persistence, size);
  bool found = false;
  bool any = false;
  for (unsigned copy = 0; copy < format::kSuperblockCopies; ++copy) {
    const format::Label content = load_label(region, copy);
    if (content.magic == format::kMagic && content.version > format::kVersion) {
      return fail(EPROTO,
                  fmt::format("it has format version {}, this program knows up to {}: use a newer one",
                              content.version, format::kVersion));
    }
    any |= content.magic == format::kMagic && content.size == sizeof content;
    if (!is_whole_label(content) || (found && content.sequence < label.content_.sequence)) continue;
    found = true;
    label.content_ = content;
    label.current_ = copy;
  }
  if (!any) return fail(EINVAL, "it is not split into partitions (pnfsrdma-brickd partition format)");
  if (!found) return fail(EUCLEAN, "both copies of the label that names its partitions are damaged");
  if (!label.is_possible())
    return fail(
        EUCLEAN,
        fmt::format("its label names partitions that its {} bytes do not hold: was it truncated?", size));
  return label;
}

Result<> PartitionLabel::write_new(MutableByteSpan region, pmem::Persistence& persistence, bool force,
                                   Random& random) {
  if (!force && Superblock::looks_formatted(region))
    return fail(EEXIST, "there is a pool or partitions already; --force destroys them and all data in them");
  // What was there goes first.
  const MutableByteSpan copies = region.first(format::kTableOffset);
  persistence.zero(copies);
  TRY(persistence.persist(copies));
  format::Label label;
  random.fill(label.uuid);
  for (unsigned copy = 0; copy < format::kSuperblockCopies; ++copy) {
    label.sequence = copy + 1;
    label.checksum = format::label_checksum(label);
    std::byte* const place = region.data() + copy * format::kSuperblockStride;
    persistence.copy(place, std::as_bytes(std::span(&label, 1)));
    TRY(persistence.persist({place, sizeof label}));
  }
  return {};
}

// A checksum proves that we wrote it, not that it fits this file.
bool PartitionLabel::is_possible() const {
  uint64_t end = format::kLabelRegion;
  for (const PartitionPlace& place : partitions()) {
    if (!is_partition_name(place.name) || place.offset < end || place.offset > size_ || place.length == 0 ||
        place.length > size_ - place.offset)
      return false;
    end = place.offset + place.length;
  }
  return true;
}

std::vector<PartitionPlace> PartitionLabel::partitions() const {
  std::vector<PartitionPlace> places;
  for (const format::Partition& partition : content_.partitions) {
    if (partition.name[0] != '\0')
      places.push_back({std::string(label_name(partition)), partition.offset, partition.length});
  }
  std::ranges::sort(places, {}, &PartitionPlace::offset);
  return places;
}

std::optional<PartitionPlace> PartitionLabel::find(std::string_view name) const {
  for (PartitionPlace& place : partitions()) {
    if (place.name == name) return std::move(place);
  }
  return std::nullopt;
}

std::vector<PartitionLabel::Gap> PartitionLabel::gaps(uint64_t alignment) const {
  std::vector<Gap> gaps;
  uint64_t at = round_up(format::kLabelRegion, alignment);
  const auto end_at = [&](uint64_t end) {
    const uint64_t whole = end - end % alignment;
    if (whole > at) gaps.push_back({at, whole - at});
  };
  const std::vector<PartitionPlace> places = partitions();
  for (const PartitionPlace& place : places) {
    end_at(place.offset);
    at = round_up(place.offset + place.length, alignment);
  }
  end_at(size_);
  return gaps;
}

uint64_t PartitionLabel::largest_gap(uint64_t alignment) const {
  uint64_t largest = 0;
  for (const Gap& gap : gaps(alignment)) largest = std::max(largest, gap.length);
  return largest;
}

Result<uint64_t> PartitionLabel::gap(uint64_t length, uint64_t alignment) const {
  const std::vector<Gap> all = gaps(alignment);
  for (const Gap& gap : all) {
    if (gap.length >= length) return gap.offset;
  }
  return fail(ENOSPC, fmt::format("no {} MiB in one piece are free: the largest piece has {} MiB",
                                  length >> 20, largest_gap(alignment) >> 20));
}

Result<> PartitionLabel::add(const PartitionPlace& place) {
  if (find(place.name)) return fail(EEXIST, fmt::format("there is a partition {} already", place.name));
  const auto free =
      std::ranges::find_if(content_.partitions, [](const auto& one) { return one.name[0] == '\0'; });
  if (free == content_.partitions.end())
    return fail(ENOSPC,
                fmt::format("there are {} partitions, and no more is possible", format::kPartitionsMax));
  *free = {};
  std::ranges::copy(place.name, free->name.begin());
  free->offset = place.offset;
  free->length = place.length;
  return store();
}

Result<> PartitionLabel::remove(std::string_view name) {
  const auto found =
      std::ranges::find_if(content_.partitions, [&](const auto& one) { return label_name(one) == name; });
  if (name.empty() || found == content_.partitions.end())
    return fail(ENOENT, fmt::format("there is no partition {}", name));
  *found = {};
  return store();
}

// One copy behind the other: a change that is cut short leaves one of them whole, and when it is made either
// may be damaged.
Result<> PartitionLabel::store() {
  ++content_.sequence;
  content_.checksum = format::label_checksum(content_);
  for (unsigned copy = 0; copy < format::kSuperblockCopies; ++copy) {
    current_ ^= 1;
    std::byte* const place = region_.data() + current_ * format::kSuperblockStride;
    persistence_.copy(place, std::as_bytes(std::span(&content_, 1)));
    TRY(persistence_.persist({place, sizeof content_}));
  }
  return {};
}

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/write_log.h"

#include <algorithm>

#include "shared/base/check.h"

namespace pnfsrdma::initiator {

namespace {

// No lineage is this number: growth under it is void.
constexpr uint64_t kNoLineage = 0;

}  // namespace

void Unflushed::remove(std::span<const FileRange> ranges) {
  for (const FileRange& range : ranges) by_rdma.remove(range.offset, range.length);
  if (by_rdma.empty()) devices.clear();
}

bool Uncommitted::growth_void(uint64_t lineage_now) const {
  return size && (lineage != lineage_now || device == nullptr || device->incarnation() != incarnation);
}

std::vector<FileRange> WriteLog::wrote_rdma(const LayoutSegment& piece, uint64_t lineage,
                                            const BrickVerifier& verifier, WallTime now) {
  std::lock_guard lock(mutex_);
  std::vector<FileRange> in_doubt;
  auto& devices = unflushed_.devices;
  const auto known = std::find_if(devices.begin(), devices.end(), [&](const Unflushed::Written& written) {
    return written.device == piece.device;
  });
  if (known == devices.end()) {
    devices.push_back({piece.device, verifier});
  } else if (known->verifier != verifier) {
    // The brick may have lost what we wrote before and had not flushed.
    in_doubt.assign(unflushed_.by_rdma.ranges().begin(), unflushed_.by_rdma.ranges().end());
    known->verifier = verifier;
  }
  unflushed_.by_rdma.add(piece.offset, piece.length);
  note_range(piece, lineage, now);
  return in_doubt;
}

void WriteLog::note_range(const LayoutSegment& piece, uint64_t lineage, WallTime now) {
  const uint64_t offset = piece.offset;
  const uint64_t end = piece.end();
  if (!uncommitted_) uncommitted_ = Uncommitted{.first = offset, .last = end};
  uncommitted_->first = std::min(uncommitted_->first, offset);
  uncommitted_->last = std::max(uncommitted_->last, end);
  uncommitted_->modified = std::max(uncommitted_->modified, now);
  if (end <= server_size_) return;
  // The oldest of several counts: if that is void, something of the growth is. Answers come in any order.
  if (!uncommitted_->size || lineage < uncommitted_->lineage) {
    uncommitted_->lineage = lineage;
    uncommitted_->device = piece.device;
    uncommitted_->incarnation = piece.incarnation;
  }
  // Also what is written again before a growth that is being committed: if that fails, this one tells it.
  written_end_ = std::max(written_end_, end);
  uncommitted_->size = written_end_;
  ++version_;
}

bool WriteLog::wrote_mds(uint64_t offset, const MdsWritten& written) {
  std::lock_guard lock(mutex_);
  bool lost = false;
  if (!written.stable) {
    lost = !unflushed_.by_mds.empty() && unflushed_.mds_verifier != written.verifier;
    if (lost) ++losses_;
    unflushed_.mds_verifier = written.verifier;
    unflushed_.by_mds.add(offset, written.length);
  }
  server_reaches(offset + written.length);
  // Attributes known from before are old: the server has set a new mtime at least.
  ++version_;
  return lost;
}

bool WriteLog::anything_unflushed() const {
  std::lock_guard lock(mutex_);
  return !unflushed_.empty();
}

bool WriteLog::unflushed_on_resting_device() const {
  std::lock_guard lock(mutex_);
  const auto& devices = unflushed_.devices;
  return std::any_of(devices.begin(), devices.end(),
                     [](const auto& written) { return written.device->rests(); });
}

Unflushed WriteLog::take_unflushed() {
  std::lock_guard lock(mutex_);
  replaced_.clear();
  return std::exchange(unflushed_, Unflushed{});
}

std::vector<FileRange> WriteLog::put_back(Unflushed unflushed) {
  std::lock_guard lock(mutex_);
  unflushed.remove(replaced_.ranges());
  if (!unflushed_.by_mds.empty()) {
    // Only what was taken can be lost; without any of the MDS there is no verifier to compare.
    if (!unflushed.by_mds.empty() && unflushed.mds_verifier != unflushed_.mds_verifier) ++losses_;
    unflushed.mds_verifier = unflushed_.mds_verifier;
  }
  std::vector<FileRange> in_doubt;
  for (const Unflushed::Written& written : unflushed_.devices) {
    auto& devices = unflushed.devices;
    const auto known = std::find_if(devices.begin(), devices.end(),
                                    [&](const auto& other) { return other.device == written.device; });
    if (known == devices.end()) {
      devices.push_back(written);
    } else if (known->verifier != written.verifier) {
      in_doubt.assign(unflushed.by_rdma.ranges().begin(), unflushed.by_rdma.ranges().end());
      known->verifier = written.verifier;
    }
  }
  for (const FileRange& range : unflushed_.by_rdma.ranges())
    unflushed.by_rdma.add(range.offset, range.length);
  for (const FileRange& range : unflushed_.by_mds.ranges()) unflushed.by_mds.add(range.offset, range.length);
  unflushed_ = std::move(unflushed);
  return in_doubt;
}

std::optional<Uncommitted> WriteLog::take_uncommitted() {
  std::lock_guard lock(mutex_);
  committing_ = std::exchange(uncommitted_, std::nullopt);
  return committing_;
}

void WriteLog::put_back(const Uncommitted& uncommitted) {
  std::lock_guard lock(mutex_);
  committing_.reset();
  if (!uncommitted_) {
    uncommitted_ = uncommitted;
    return;
  }
  uncommitted_->first = std::min(uncommitted_->first, uncommitted.first);
  uncommitted_->last = std::max(uncommitted_->last, uncommitted.last);
  uncommitted_->modified = std::max(uncommitted_->modified, uncommitted.modified);
  if (uncommitted.size) {
    uncommitted_->size = std::max(uncommitted_->size.value_or(0), *uncommitted.size);
    // The older one.
    uncommitted_->lineage = uncommitted.lineage;
    uncommitted_->device = uncommitted.device;
    uncommitted_->incarnation = uncommitted.incarnation;
  }
}

void WriteLog::committed(const Uncommitted& uncommitted, std::optional<uint64_t> new_size) {
  std::lock_guard lock(mutex_);
  committing_.reset();
  if (uncommitted.size) server_reaches(*uncommitted.size);
  if (new_size) server_reaches(*new_size);
  if (uncommitted_ && uncommitted_->size && *uncommitted_->size <= server_size_) uncommitted_->size.reset();
  if (!uncommitted_ || !uncommitted_->size) written_end_ = 0;
  ++version_;
}

void WriteLog::abandon(const Uncommitted& uncommitted) {
  CHECK(!uncommitted.size);
  std::lock_guard lock(mutex_);
  committing_.reset();
  ++version_;
}

void WriteLog::put_back_void(Uncommitted uncommitted) {
  uncommitted.lineage = kNoLineage;
  put_back(uncommitted);
}

bool WriteLog::doubt_growth() {
  std::lock_guard lock(mutex_);
  if (committing_ || !uncommitted_ || !uncommitted_->size) return false;
  uncommitted_->lineage = kNoLineage;
  return true;
}

bool WriteLog::growth_void(uint64_t lineage_now) const {
  std::lock_guard lock(mutex_);
  return (uncommitted_ && uncommitted_->growth_void(lineage_now)) ||
         (committing_ && committing_->growth_void(lineage_now));
}

void WriteLog::replaced(std::span<const FileRange> ranges) {
  std::lock_guard lock(mutex_);
  unflushed_.remove(ranges);
  for (const FileRange& range : ranges) replaced_.add(range.offset, range.length);
}

bool WriteLog::was_replaced(uint64_t offset, uint64_t length) const {
  std::lock_guard lock(mutex_);
  return replaced_.covers(offset, length);
}

void WriteLog::restored(bool lost) {
  std::lock_guard lock(mutex_);
  // The server has set its mtime at each WRITE.
  uncommitted_.reset();
  written_end_ = 0;
  append_end_ = 0;
  ++restorations_;
  if (lost) ++losses_;
  ++version_;
}

uint64_t WriteLog::restorations() const {
  std::lock_guard lock(mutex_);
  return restorations_;
}

bool WriteLog::grew() const {
  std::lock_guard lock(mutex_);
  return (uncommitted_ && uncommitted_->size) || (committing_ && committing_->size);
}

bool WriteLog::anything_uncommitted() const {
  std::lock_guard lock(mutex_);
  return uncommitted_ || committing_;
}

void WriteLog::lost(uint64_t count) {
  std::lock_guard lock(mutex_);
  losses_ += count;
}

uint64_t WriteLog::losses() const {
  std::lock_guard lock(mutex_);
  return losses_;
}

void WriteLog::heard(uint64_t losses) {
  std::lock_guard lock(mutex_);
  heard_ = std::max(heard_, losses);
}

uint64_t WriteLog::unheard_from() const {
  std::lock_guard lock(mutex_);
  return heard_;
}

uint64_t WriteLog::size() const {
  std::lock_guard lock(mutex_);
  return std::max(server_size_.load(), written_end_);
}

uint64_t WriteLog::version() const {
  std::lock_guard lock(mutex_);
  return version_;
}

void WriteLog::server_size(uint64_t size, uint64_t asked_at) {
  std::lock_guard lock(mutex_);
  if (asked_at == version_) server_size_ = size;
}

void WriteLog::truncated(uint64_t size) {
  std::lock_guard lock(mutex_);
  server_size_ = size;
  written_end_ = 0;
  append_end_ = 0;
  ++version_;
  unflushed_.by_rdma.cut(size);
  if (unflushed_.by_rdma.empty()) unflushed_.devices.clear();
  unflushed_.by_mds.cut(size);
  // The SETATTR has set size and mtime after everything written before.
  uncommitted_.reset();
}

std::optional<WallTime> WriteLog::modified() const {
  std::lock_guard lock(mutex_);
  if (uncommitted_) return uncommitted_->modified;
  if (committing_) return committing_->modified;
  return std::nullopt;
}

uint64_t WriteLog::reserve_append(uint64_t length) {
  std::lock_guard lock(mutex_);
  const uint64_t offset = std::max({server_size_.load(), written_end_, append_end_});
  append_end_ = range_end(offset, length);
  return offset;
}

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/dirty_list.h"

#include <algorithm>

namespace pnfsrdma::initiator {

namespace {

// No incarnation of a layout is this number: growth under it is void.
constexpr uint64_t kNoIncarnation = 0;

}  // namespace

bool DirtyExtent::growth_void(uint64_t incarnation_now) const {
  return growth && (layout_incarnation != incarnation_now || place.device->incarnation() != incarnation);
}

bool DirtyList::wrote(const LayoutSegment& piece, uint64_t known_size, uint64_t layout_incarnation,
                      const BrickVerifier& verifier, WallTime now, std::optional<uint64_t> flushed_behind) {
  std::lock_guard lock(mutex_);
  DirtyExtent extent{.offset = piece.offset,
                     .end = piece.end(),
                     .sequence = ++sequence_,
                     .place = {piece.device, verifier},
                     .layout_incarnation = layout_incarnation,
                     .incarnation = piece.incarnation,
                     .unflushed = !flushed_behind};
  const auto enter = [&](const DirtyExtent& part) {
    flushed_behind ? put_flushed(part, *flushed_behind) : put(part);
  };
  if (!changed_) changed_ = Commit{.first = extent.offset, .last = extent.end};
  changed_->first = std::min(changed_->first, extent.offset);
  changed_->last = std::max(changed_->last, extent.end);
  changed_->modified = std::max(changed_->modified, now);
  if (extent.end > server_size_) ++version_;
  // Others may have made it longer than we have heard.
  server_reaches(std::min(known_size, extent.end));
  if (extent.end > known_size) {
    if (known_size > extent.offset) {
      DirtyExtent front = extent;
      front.end = extent.offset = known_size;
      enter(front);
    }
    extent.growth = true;
  }
  enter(extent);
  return extents_.size() > 2 * kExtentsMax;
}

void DirtyList::wrote_through_mds(uint64_t offset, const nfs4::WriteResult& written, UnstableCopy copy) {
  std::lock_guard lock(mutex_);
  const uint64_t end = offset + written.count;
  if (written.committed != nfs4::StableHow::kUnstable) {
    carve(offset, end);
  } else {
    put({.offset = offset,
         .end = end,
         .sequence = ++sequence_,
         .place = {nullptr, written.verifier},
         .copied = copy != nullptr});
    forget_copies({offset, written.count});
    if (copy) copies_.put({offset, written.count}, std::move(copy));
    keeps_copies_.store(!copies_.empty(), std::memory_order_release);
  }
  server_reaches(end);
  // Attributes known from before are old: the server has set a new mtime at least.
  ++version_;
}

void DirtyList::hold(FileRange range, UnstableCopy copy, WallTime now) {
  std::lock_guard lock(mutex_);
  put({.offset = range.offset, .end = range.end(), .sequence = ++sequence_, .copied = true, .held = true});
  copies_.put(range, std::move(copy));
  keeps_copies_.store(true, std::memory_order_release);
  held_at_ = holds() ? std::max(held_at_, now) : now;
  holds_.store(true, std::memory_order_release);
}

void DirtyList::unhold(FileRange range) {
  std::lock_guard lock(mutex_);
  carve(range.offset, range.end());
}

void DirtyList::look_for_held() {
  if (holds() && std::ranges::none_of(extents_, &DirtyExtent::held))
    holds_.store(false, std::memory_order_release);
}

void DirtyList::posted(const UnknownWrites& writes) {
  std::lock_guard lock(mutex_);
  for (UnknownWrites& known : unknown_) {
    if (known.device != writes.device) continue;
    // The hello of a newer connection has ended those of before.
    if (known.connection != writes.connection) known = writes;
    known.layout_incarnation = writes.layout_incarnation;
    known.layout = writes.layout;
    const uint64_t end = std::max(known.range.end(), writes.range.end());
    known.range.offset = std::min(known.range.offset, writes.range.offset);
    known.range.length = end - known.range.offset;
    return;
  }
  unknown_.push_back(writes);
}

std::optional<UnknownWrites> DirtyList::unknown_in(FileRange range) const {
  std::lock_guard lock(mutex_);
  for (const UnknownWrites& writes : unknown_) {
    if (overlap(writes.range.offset, writes.range.length, range.offset, range.length)) return writes;
  }
  return std::nullopt;
}

void DirtyList::dead(const Device* device) {
  std::lock_guard lock(mutex_);
  std::erase_if(unknown_, [&](const UnknownWrites& writes) { return writes.device == device; });
}

void DirtyList::dead(FileRange returned) {
  std::lock_guard lock(mutex_);
  std::erase_if(unknown_, [&](const UnknownWrites& writes) {
    return returned.offset <= writes.range.offset &&
           range_end(returned.offset, returned.length) >= writes.range.end();
  });
}

DirtyList::Extents::iterator DirtyList::first_behind(uint64_t offset) {
  return std::lower_bound(extents_.begin(), extents_.end(), offset,
                          [](const DirtyExtent& extent, uint64_t wanted) { return extent.end <= wanted; });
}

void DirtyList::put(const DirtyExtent& extent) {
  if (extent.growth) growth_from_ = std::min(growth_from_, extent.offset);
  auto at = first_behind(extent.offset);
  if (at != extents_.end() && at->offset <= extent.offset && at->end >= extent.end && joins(*at, extent)) {
    at->sequence = extent.sequence;
    return;
  }
  carve(extent.offset, extent.end);
  at = first_behind(extent.offset);
  const bool front = at != extents_.begin() && (at - 1)->end == extent.offset && joins(*(at - 1), extent);
  const bool back = at != extents_.end() && at->offset == extent.end && joins(extent, *at);
  if (front) {
    (at - 1)->sequence = extent.sequence;
    (at - 1)->end = back ? at->end : extent.end;
    if (back) extents_.erase(at);
  } else if (back) {
    at->sequence = extent.sequence;
    at->offset = extent.offset;
  } else {
    extents_.insert(at, extent);
    bound_extents(join_at_);
  }
}

uint64_t DirtyList::noted() const {
  std::lock_guard lock(mutex_);
  return sequence_;
}

// What was noted since may have been written over this, and behind its flush: it stays.
void DirtyList::put_flushed(DirtyExtent extent, uint64_t noted) {
  while (extent.offset < extent.end) {
    auto newer = first_behind(extent.offset);
    while (newer != extents_.end() && newer->sequence <= noted) ++newer;
    const bool inside = newer != extents_.end() && newer->offset < extent.end;
    DirtyExtent piece = extent;
    if (inside) piece.end = std::max(extent.offset, newer->offset);
    extent.offset = inside ? std::min(extent.end, newer->end) : extent.end;
    if (piece.offset == piece.end) continue;
    if (piece.growth) {
      put(piece);
    } else {
      carve(piece.offset, piece.end);
    }
  }
}

bool DirtyList::only_at(FileRange range, const Device* device, const BrickVerifier& verifier) const {
  std::lock_guard lock(mutex_);
  return std::ranges::all_of(extents_, [&](const DirtyExtent& extent) {
    return !extent.unflushed || extent.end <= range.offset || extent.offset >= range.end() ||
           (extent.place.device == device && extent.place.verifier == verifier);
  });
}

void DirtyList::flushed(FileRange range, uint64_t noted) {
  std::lock_guard lock(mutex_);
  put_flushed({.offset = range.offset, .end = range.end()}, noted);
}

// What is written over while it is being flushed is not in the list any more, and the flush answers for it all
// the same.
void DirtyList::note_overwritten(const DirtyExtent& extent) {
  if (!extent.unflushed || extent.held || extent.sequence > flushing_) return;
  if (std::ranges::find(overwritten_, extent.place) == overwritten_.end())
    overwritten_.push_back(extent.place);
}

// The flush cannot answer for it: what lies over it has to be flushed, too.
void DirtyList::doubt_overwritten(const Device* device, const std::optional<BrickVerifier>& now) {
  const auto gone = [&](const Place& place) { return place.device == device && place.verifier != now; };
  if (std::erase_if(overwritten_, gone) > 0) overwritten_lost_ = true;
}

void DirtyList::carve(uint64_t offset, uint64_t end) {
  forget_copies({offset, end - offset});
  auto at = first_behind(offset);
  if (at == extents_.end() || at->offset >= end) return;
  for (auto over = at; over != extents_.end() && over->offset < end; ++over) note_overwritten(*over);
  if (at->offset < offset) {
    if (at->end > end) {
      DirtyExtent back = *at;
      back.offset = end;
      at->end = offset;
      extents_.insert(at + 1, back);
      return;
    }
    at->end = offset;
    ++at;
  }
  auto last = at;
  while (last != extents_.end() && last->end <= end) ++last;
  if (last != extents_.end() && last->offset < end) last->offset = end;
  extents_.erase(at, last);
  look_for_held();
}

bool DirtyList::joins(const DirtyExtent& front, const DirtyExtent& back) const {
  return front.place == back.place && front.layout_incarnation == back.layout_incarnation &&
         front.incarnation == back.incarnation && front.growth == back.growth &&
         front.unflushed == back.unflushed && front.copied == back.copied && front.held == back.held &&
         (front.sequence > flushing_) == (back.sequence > flushing_) &&
         (front.sequence > cutting_) == (back.sequence > cutting_);
}

// Where too little can be joined the next try is due at twice as many.
void DirtyList::bound_extents(size_t most) {
  if (extents_.size() <= most) return;
  for (size_t before = SIZE_MAX; extents_.size() > kExtentsMax && extents_.size() < before;) {
    before = extents_.size();
    join_neighbours();
  }
  join_at_ = extents_.size() > kExtentsMax ? 2 * extents_.size() : kExtentsMax;
}

// Half of them at a time, those nearest to each other, so that a write seldom does it. Growth stays exact:
// only what was written can be written again; KeptWrites bounds it.
void DirtyList::join_neighbours() {
  const auto may_join = [&](size_t i) {
    return !extents_[i].growth && !extents_[i].held && joins(extents_[i], extents_[i + 1]);
  };
  std::vector<uint64_t> gaps;
  for (size_t i = 0; i + 1 < extents_.size(); ++i) {
    if (may_join(i)) gaps.push_back(extents_[i + 1].offset - extents_[i].end);
  }
  if (gaps.empty()) return;
  const auto middle = gaps.begin() + static_cast<ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  Extents joined;
  joined.reserve(extents_.size());
  for (size_t i = 0; i < extents_.size(); ++i) {
    const bool near = i > 0 && may_join(i - 1) && extents_[i].offset - extents_[i - 1].end <= *middle;
    if (near) {
      joined.back().end = extents_[i].end;
      joined.back().sequence = std::max(joined.back().sequence, extents_[i].sequence);
    } else {
      joined.push_back(extents_[i]);
    }
  }
  extents_ = std::move(joined);
}

void DirtyList::forget_copies(FileRange range) {
  if (copies_.empty()) return;
  copies_.forget(range);
  if (copies_.empty()) keeps_copies_.store(false, std::memory_order_release);
}

void DirtyList::drop_clean() {
  std::erase_if(extents_, [this](const DirtyExtent& extent) {
    const bool clean = !extent.unflushed && !extent.growth;
    if (clean) forget_copies({extent.offset, extent.end - extent.offset});
    return clean;
  });
  const auto growth =
      std::find_if(extents_.begin(), extents_.end(), [](const DirtyExtent& extent) { return extent.growth; });
  growth_from_ = growth == extents_.end() ? UINT64_MAX : growth->offset;
  look_for_held();
}

Flush DirtyList::begin_flush(bool with_held) {
  std::lock_guard lock(mutex_);
  Flush flush{.sequence = sequence_};
  for (const DirtyExtent& extent : extents_) {
    if (!extent.unflushed || (extent.held && !with_held)) continue;
    Device* const device = extent.place.device;
    if (extent.held) {
      flush.held.add(extent.offset, extent.end - extent.offset);
      continue;
    }
    (device == nullptr ? flush.by_mds : flush.by_rdma).add(extent.offset, extent.end - extent.offset);
    if (device != nullptr &&
        std::find(flush.devices.begin(), flush.devices.end(), device) == flush.devices.end())
      flush.devices.push_back(device);
  }
  flushing_ = sequence_;
  overwritten_.clear();
  overwritten_lost_ = false;
  return flush;
}

bool DirtyList::end_flush(const Flush& flush, bool done) {
  std::lock_guard lock(mutex_);
  flushing_ = 0;
  if (done) {
    for (DirtyExtent& extent : extents_) {
      if (extent.sequence <= flush.sequence && !extent.held) extent.unflushed = false;
    }
    drop_clean();
  }
  join_at_ = kExtentsMax;
  bound_extents(join_at_);
  return !overwritten_lost_;
}

bool DirtyList::verify(const Flush& flush, const Device* device,
                       const std::optional<xdr::FixedOpaque<8>>& now) {
  std::lock_guard lock(mutex_);
  bool lost = false;
  for (DirtyExtent& extent : extents_) {
    if (!extent.unflushed || extent.sequence > flush.sequence) continue;
    if (extent.place.device != device || extent.place.verifier == now) continue;
    extent.unflushed = false;
    // What is being committed may be so with zeros in it: the copies go when the answer comes.
    if (extent.growth && !committing_) {
      extent.layout_incarnation = kNoIncarnation;
    } else {
      lost = true;
    }
  }
  doubt_overwritten(device, now);
  drop_clean();
  if (lost) ++losses_;
  return lost;
}

DirtyList::Gone DirtyList::gone_from_mds(const Flush& flush, const WriteVerifier& now) {
  std::lock_guard lock(mutex_);
  Gone gone;
  for (DirtyExtent& extent : extents_) {
    if (!extent.unflushed || extent.held || extent.sequence > flush.sequence) continue;
    if (extent.place.device != nullptr || extent.place.verifier == now) continue;
    const FileRange range{extent.offset, extent.end - extent.offset};
    std::byte any{};
    // Without a copy it lies between writes that were joined.
    extent.unflushed = extent.copied && copies_.first(range, std::span(&any, 1));
    if (extent.unflushed) gone.copied.push_back(range);
    if (!extent.copied) gone.lost = true;
  }
  doubt_overwritten(nullptr, now);
  drop_clean();
  if (gone.lost) ++losses_;
  return gone;
}

void DirtyList::drop_copies() {
  std::lock_guard lock(mutex_);
  for (DirtyExtent& extent : extents_) {
    if (extent.held) continue;
    forget_copies({extent.offset, extent.end - extent.offset});
    extent.copied = false;
  }
}

std::optional<FileRange> DirtyList::first_copy(FileRange within, MutableByteSpan sink) const {
  std::lock_guard lock(mutex_);
  return copies_.first(within, sink);
}

uint64_t DirtyList::copied_end() const {
  std::lock_guard lock(mutex_);
  const auto last = std::find_if(extents_.rbegin(), extents_.rend(),
                                 [](const DirtyExtent& extent) { return extent.copied; });
  return last == extents_.rend() ? 0 : last->end;
}

void DirtyList::lost_at_mds(FileRange range) {
  std::lock_guard lock(mutex_);
  carve(range.offset, range.end());
  ++losses_;
}

bool DirtyList::has_unflushed(const Flush& flush, const Device* device) const {
  return std::any_of(extents_.begin(), extents_.end(), [&](const DirtyExtent& extent) {
    return extent.unflushed && extent.sequence <= flush.sequence && extent.place.device == device;
  });
}

bool DirtyList::pending(const Flush& flush, const Device* device) const {
  std::lock_guard lock(mutex_);
  return has_unflushed(flush, device) ||
         std::ranges::any_of(overwritten_, [&](const Place& place) { return place.device == device; });
}

bool DirtyList::to_be_asked(const Flush& flush, const Device* device) {
  std::lock_guard lock(mutex_);
  const bool unflushed = has_unflushed(flush, device);
  if (!unflushed) doubt_overwritten(device, std::nullopt);
  return unflushed;
}

bool DirtyList::anything_unflushed() const {
  std::lock_guard lock(mutex_);
  return std::any_of(extents_.begin(), extents_.end(), [](const auto& extent) { return extent.unflushed; });
}

std::vector<Device*> DirtyList::devices() const {
  std::lock_guard lock(mutex_);
  std::vector<Device*> devices;
  for (const DirtyExtent& extent : extents_) {
    Device* const device = extent.place.device;
    if (extent.unflushed && device != nullptr &&
        std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  }
  return devices;
}

bool DirtyList::unflushed_on_resting_device() const {
  std::lock_guard lock(mutex_);
  const Device* rested = nullptr;  // asked last: mostly there is one
  return std::any_of(extents_.begin(), extents_.end(), [&](const DirtyExtent& extent) {
    const Device* const device = extent.place.device;
    if (!extent.unflushed || device == nullptr || device == rested) return false;
    rested = device;
    return device->rests();
  });
}

void DirtyList::forget_unflushed() {
  std::lock_guard lock(mutex_);
  for (DirtyExtent& extent : extents_) extent.unflushed = false;
  drop_clean();
}

std::optional<Commit> DirtyList::begin_commit(uint64_t layout_incarnation) {
  std::lock_guard lock(mutex_);
  committing_ = std::exchange(changed_, std::nullopt);
  if (!committing_) return std::nullopt;
  committing_->layout_incarnation = layout_incarnation;
  const uint64_t end = growth_end();
  committing_->size = end > 0 ? std::optional(end) : std::nullopt;
  return committing_;
}

// What is void stays so: it is zeroed there, wherever the file ends by now. And what was written under a
// later layout was written to another file, so to speak: it may have been cut between.
std::vector<FileRange> DirtyList::committed(const Commit& commit, std::optional<uint64_t> new_size) {
  std::lock_guard lock(mutex_);
  committing_.reset();
  const uint64_t size = std::max(commit.size.value_or(0), new_size.value_or(0));
  server_reaches(size);
  ++version_;
  ++commits_;
  std::vector<FileRange> settled;
  for (size_t i = 0; i < extents_.size() && extents_[i].offset < size; ++i) {
    if (!extents_[i].growth || extents_[i].layout_incarnation != commit.layout_incarnation) continue;
    if (extents_[i].end > size) {
      DirtyExtent back = extents_[i];
      back.offset = extents_[i].end = size;
      extents_.insert(extents_.begin() + static_cast<ptrdiff_t>(i) + 1, back);
    }
    extents_[i].growth = false;
    settled.push_back({extents_[i].offset, extents_[i].end - extents_[i].offset});
  }
  drop_clean();
  return settled;
}

void DirtyList::not_committed(const Commit& commit) {
  std::lock_guard lock(mutex_);
  tell_again(commit);
}

void DirtyList::tell_again(const Commit& commit) {
  committing_.reset();
  if (!changed_) changed_ = commit;
  changed_->first = std::min(changed_->first, commit.first);
  changed_->last = std::max(changed_->last, commit.last);
  changed_->modified = std::max(changed_->modified, commit.modified);
}

void DirtyList::commit_void(const Commit& commit) {
  std::lock_guard lock(mutex_);
  ++version_;
  if (!commit.size) return committing_.reset();
  void_all_growth();
  tell_again(commit);
}

bool DirtyList::anything_uncommitted() const {
  std::lock_guard lock(mutex_);
  return changed_ || committing_ || any_growth();
}

bool DirtyList::any_growth() const {
  if (growth_from_ == UINT64_MAX) return false;
  return std::any_of(extents_.begin(), extents_.end(), [](const auto& extent) { return extent.growth; });
}

uint64_t DirtyList::growth_end() const {
  // Most lists end with it.
  for (auto at = extents_.rbegin(); at != extents_.rend() && at->end > growth_from_; ++at) {
    if (at->growth) return at->end;
  }
  return 0;
}

bool DirtyList::grew() const {
  std::lock_guard lock(mutex_);
  return any_growth();
}

std::vector<FileRange> DirtyList::growth() const {
  std::lock_guard lock(mutex_);
  std::vector<FileRange> ranges;
  for (const DirtyExtent& extent : extents_) {
    if (extent.growth) ranges.push_back({extent.offset, extent.end - extent.offset});
  }
  return ranges;
}

bool DirtyList::grew_before(uint64_t end) const {
  std::lock_guard lock(mutex_);
  return std::any_of(extents_.begin(), extents_.end(),
                     [end](const DirtyExtent& extent) { return extent.growth && extent.offset < end; });
}

void DirtyList::void_growth() {
  std::lock_guard lock(mutex_);
  void_all_growth();
}

void DirtyList::void_all_growth() {
  for (DirtyExtent& extent : extents_) {
    if (extent.growth) extent.layout_incarnation = kNoIncarnation;
  }
}

bool DirtyList::growth_void(uint64_t incarnation_now) const {
  std::lock_guard lock(mutex_);
  return std::any_of(extents_.begin(), extents_.end(),
                     [&](const DirtyExtent& extent) { return extent.growth_void(incarnation_now); });
}

bool DirtyList::restored() {
  std::lock_guard lock(mutex_);
  const bool lost = std::erase_if(extents_, [](const DirtyExtent& extent) { return extent.growth; }) > 0;
  growth_from_ = UINT64_MAX;
  // The server has set its mtime at each WRITE.
  changed_.reset();
  ++restorations_;
  if (lost) ++losses_;
  ++version_;
  return lost;
}

void DirtyList::growth_lost() {
  if (!restored()) lost();
}

uint64_t DirtyList::restorations() const {
  std::lock_guard lock(mutex_);
  return restorations_;
}

void DirtyList::lost() {
  std::lock_guard lock(mutex_);
  ++losses_;
}

uint64_t DirtyList::losses() const {
  std::lock_guard lock(mutex_);
  return losses_;
}

void DirtyList::heard(uint64_t losses) {
  std::lock_guard lock(mutex_);
  heard_ = std::max(heard_, losses);
}

uint64_t DirtyList::unheard_from() const {
  std::lock_guard lock(mutex_);
  return heard_;
}

uint64_t DirtyList::size() const {
  std::lock_guard lock(mutex_);
  return std::max(server_size_.load(), growth_end());
}

uint64_t DirtyList::version() const {
  std::lock_guard lock(mutex_);
  return version_;
}

void DirtyList::server_reaches(uint64_t end) {
  server_size_ = std::max(server_size_.load(), end);
  reached_ = std::max(reached_, end);
}

void DirtyList::server_size(uint64_t size) {
  std::lock_guard lock(mutex_);
  server_size_ = size;
}

bool DirtyList::server_size(uint64_t size, uint64_t version, SteadyTime asked) {
  std::lock_guard lock(mutex_);
  if (asked < size_asked_) return false;
  size_asked_ = asked;
  if (version == version_) {
    server_size_ = size;
    return true;
  }
  if (version >= cut_at_) {
    // Beside what changed here another client may have made it longer.
    server_size_ = std::max(server_size_.load(), size);
  }
  return false;
}

void DirtyList::begin_truncation() {
  std::lock_guard lock(mutex_);
  cutting_ = sequence_;
  reached_ = 0;
}

DirtyList::Cut DirtyList::end_truncation(std::optional<uint64_t> size) {
  std::lock_guard lock(mutex_);
  const uint64_t cut = std::exchange(cutting_, 0);
  if (!size) return {.version = version_};
  Cut done;
  for (DirtyExtent& extent : extents_) {
    if (extent.sequence > cut) continue;
    if (extent.growth) done.settled.push_back({extent.offset, extent.end - extent.offset});
    extent.growth = false;
    if (extent.end > *size)
      forget_copies({std::max(extent.offset, *size), extent.end - std::max(extent.offset, *size)});
    extent.end = std::max(extent.offset, std::min(extent.end, *size));
  }
  std::erase_if(extents_, [](const DirtyExtent& extent) { return extent.offset == extent.end; });
  drop_clean();
  const bool beside = sequence_ != cut || reached_ > 0;
  server_size_ = std::max(*size, reached_);
  cut_at_ = ++version_;
  ++commits_;
  // The SETATTR has set size and mtime after everything written before.
  if (!beside) changed_.reset();
  done.version = beside ? 0 : version_;
  return done;
}

std::optional<WallTime> DirtyList::modified() const {
  std::lock_guard lock(mutex_);
  std::optional<WallTime> newest;
  if (holds()) newest = held_at_;
  const std::optional<Commit>& told = changed_ ? changed_ : committing_;
  return told && (!newest || told->modified > *newest) ? told->modified : newest;
}

uint64_t DirtyList::begin_append(uint64_t length) {
  std::lock_guard lock(mutex_);
  const uint64_t offset = std::max({server_size_.load(), growth_end(), append_end_});
  append_end_ = range_end(offset, length);
  ++appending_;
  return offset;
}

void DirtyList::end_append(uint64_t offset, uint64_t length, bool done) {
  std::lock_guard lock(mutex_);
  // The next one goes where this one should have gone, unless another is behind it already.
  if (!done && append_end_ == range_end(offset, length)) append_end_ = offset;
  if (--appending_ == 0) append_end_ = 0;
}

std::vector<DirtyExtent> DirtyList::extents() const {
  std::lock_guard lock(mutex_);
  return extents_;
}

}  // namespace pnfsrdma::initiator

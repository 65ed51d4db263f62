// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/layout_cache.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/initiator/brick/device.h"

namespace pnfsrdma::initiator {

namespace {

bool matches(nfs4::IoMode recalled, nfs4::IoMode held) {
  return recalled == nfs4::IoMode::kAny || recalled == held;
}

// Seqids wrap and skip zero; half the circle is "newer".
bool newer(uint32_t seqid, uint32_t than) {
  return static_cast<int32_t>(seqid - than) > 0;
}

}  // namespace

LayoutCache::Entry LayoutCache::enter(LayoutPin& pin, uint64_t offset, uint64_t length, bool for_write,
                                      uint64_t epoch, uint64_t appended_to) {
  Lock lock(mutex_);
  refresh(epoch);
  if (appended_to != 0 && !(has_end() && end_number_ == appended_to)) return Entry::kClosed;
  const uint64_t end = range_end(offset, length);
  uint64_t position = offset;
  pin.count_ = 0;
  size_t index = find(offset);
  for (; index < segments_.size() && position < end && pin.count_ < kPiecesMax; ++index) {
    const LayoutSegment& segment = segments_[index];
    if (segment.offset > position || !usable(segment, for_write)) break;
    const uint64_t to = std::min(end, segment.end());
    if (!closing_.empty() && closed(position, to - position, segment.iomode)) {
      if (pin.count_ == 0) return Entry::kClosed;
      break;
    }
    pin.pieces_[pin.count_++] = segment.part(position, to);
    position = to;
  }
  if (pin.count_ == 0) {
    return !closing_.empty() && closed(offset, 1, for_write ? nfs4::IoMode::kReadWrite : nfs4::IoMode::kRead)
               ? Entry::kClosed
               : Entry::kMissing;
  }
  pin.offset = offset;
  pin.length = position - offset;
  pin.layout_incarnation = incarnation_;
  pin.layout = stateid_.value_or(nfs4::Stateid{});
  pin.known_size = known_size_;
  pin.held_end = segments_[index - 1].end();
  while (index < segments_.size() && segments_[index].offset == pin.held_end &&
         usable(segments_[index], for_write)) {
    pin.held_end = segments_[index++].end();
  }
  pin.sequential = offset == last_end_;
  if (!pin.sequential) run_begin_ = offset;
  pin.run_begin = run_begin_;
  last_end_ = position;
  link(pin);
  return Entry::kEntered;
}

void LayoutCache::enter(FlushPin& pin, std::span<const FileRange> ranges, bool through_gate, uint64_t epoch) {
  Lock lock(mutex_);
  refresh(epoch);
  pin.pieces.clear();
  pin.missing.clear();
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const FileRange& range : ranges) {
    uint64_t position = range.offset;
    for (size_t index = find(position); index < segments_.size() && position < range.end(); ++index) {
      const LayoutSegment& segment = segments_[index];
      if (segment.offset >= range.end()) break;
      const uint64_t from = std::max(position, segment.offset);
      const uint64_t to = std::min(range.end(), segment.end());
      if (!usable(segment, true) || (!through_gate && closed(from, to - from, segment.iomode))) continue;
      if (from > position) pin.missing.push_back({position, from - position});
      pin.pieces.push_back(segment.part(from, to));
      position = to;
    }
    if (position < range.end()) pin.missing.push_back({position, range.end() - position});
    first = std::min(first, range.offset);
    last = std::max(last, range.end());
  }
  pin.gate_.offset = first == UINT64_MAX ? 0 : first;
  pin.gate_.length = last > pin.gate_.offset ? last - pin.gate_.offset : 0;
  pin.gate_.is_flush_ = true;
  link(pin.gate_);
}

void LayoutCache::leave(LayoutPin& pin) {
  Lock lock(mutex_);
  (pin.previous_ != nullptr ? pin.previous_->next_ : pins_) = pin.next_;
  if (pin.next_ != nullptr) pin.next_->previous_ = pin.previous_;
  if (drainers_ > 0) drained_.notify_all();
}

void LayoutCache::abandon(LayoutPin& pin) {
  leave(pin);
  Lock lock(mutex_);
  if (pin.sequential && last_end_ == pin.offset + pin.length) last_end_ = pin.offset;
}

void LayoutCache::link(LayoutPin& pin) {
  pin.previous_ = nullptr;
  pin.next_ = pins_;
  if (pins_ != nullptr) pins_->previous_ = &pin;
  pins_ = &pin;
}

bool LayoutCache::inside(FileRange range, bool with_flushes) const {
  for (const LayoutPin* pin = pins_; pin != nullptr; pin = pin->next_) {
    if (pin->is_flush_ && !with_flushes) continue;
    if (overlap(pin->offset, pin->length, range.offset, range.length)) return true;
  }
  return false;
}

size_t LayoutCache::find(uint64_t offset) const {
  const auto found =
      std::upper_bound(segments_.begin(), segments_.end(), offset,
                       [](uint64_t wanted, const LayoutSegment& segment) { return wanted < segment.end(); });
  return static_cast<size_t>(found - segments_.begin());
}

bool LayoutCache::usable(const LayoutSegment& segment, bool for_write) const {
  if (for_write && !segment.writable()) return false;
  if (segment.hole()) return holes_ == nullptr || holes_->believes(segment.incarnation);
  return segment.device->incarnation() == segment.incarnation;
}

bool LayoutCache::closed(uint64_t offset, uint64_t length, nfs4::IoMode held) const {
  return std::any_of(closing_.begin(), closing_.end(), [&](const Closing& closing) {
    return matches(closing.iomode, held) &&
           overlap(offset, length, closing.range.offset, closing.range.length);
  });
}

void LayoutCache::refresh(uint64_t epoch) {
  if (epoch_ == epoch) return;
  clear(false);
  epoch_ = epoch;
}

void LayoutCache::clear(bool returned) {
  if (stateid_ || !segments_.empty()) ++incarnation_;
  if (stateid_ && !returned && lost_ != nullptr) lost_->add(*stateid_);
  segments_.clear();
  stateid_.reset();
  some_went();
}

uint64_t LayoutCache::held_end() const {
  const auto last = std::find_if(segments_.rbegin(), segments_.rend(),
                                 [](const LayoutSegment& segment) { return !segment.hole(); });
  return last == segments_.rend() ? 0 : last->end();
}

void LayoutCache::some_went() {
  end_went();
  ++holdings_;
  known_size_ = std::min(known_size_, held_end());
}

void LayoutCache::end_went() {
  ++ends_lost_;
  end_token_ = 0;
  end_known_ = false;
}

// What went while the answer was under way may have taken it along at the server.
void LayoutCache::take_end(const End& end) {
  if (end.token == 0 || end.ends_lost != ends_lost_ || !closing_.empty() || returning_ > 0) return end_went();
  end_era_ = end.era;
  if (end.token == end_token_) return;
  end_went();
  end_token_ = end.token;
  ++end_number_;
  end_taken_ = end.now;
}

// Whose layout was revoked, or whose lease may be over, has lost it and may not have heard which one it was.
bool LayoutCache::has_end() const {
  return end_token_ != 0 && (holes_ == nullptr || holes_->believes(end_era_));
}

uint64_t LayoutCache::end() const {
  Lock lock(mutex_);
  return has_end() && end_known_ ? end_number_ : 0;
}

bool LayoutCache::holds_end() const {
  Lock lock(mutex_);
  return has_end();
}

void LayoutCache::know_end(SteadyTime asked) {
  Lock lock(mutex_);
  if (end_token_ != 0 && asked > end_taken_) end_known_ = true;
}

void LayoutCache::lose_end() {
  Lock lock(mutex_);
  end_went();
}

uint64_t LayoutCache::known_size() const {
  Lock lock(mutex_);
  return known_size_;
}

uint64_t LayoutCache::holdings() const {
  Lock lock(mutex_);
  return holdings_;
}

void LayoutCache::learn_size(uint64_t size, uint64_t holdings) {
  Lock lock(mutex_);
  if (holdings == holdings_) known_size_ = std::max(known_size_, std::min(size, held_end()));
}

void LayoutCache::drop_grant(uint64_t grant) {
  Lock lock(mutex_);
  const size_t dropped = std::erase_if(segments_, [&](const LayoutSegment& segment) {
    return segment.read.grant == grant || segment.write.grant == grant;
  });
  if (dropped == 0) return;
  ++incarnation_;
  some_went();
}

void LayoutCache::drop_all() {
  Lock lock(mutex_);
  clear(false);
}

void LayoutCache::drop_all(const nfs4::Stateid& stateid) {
  Lock lock(mutex_);
  if (stateid_ && stateid_->other == stateid.other) clear(true);
}

void LayoutCache::drop_refused(const nfs4::Stateid& stateid) {
  Lock lock(mutex_);
  if (stateid_ && stateid_->other == stateid.other) clear(false);
}

LayoutCache::Begin LayoutCache::begin_get(uint64_t offset, uint64_t length, bool for_write,
                                          SteadyTime deadline, uint64_t epoch, Getting& getting) {
  Lock lock(mutex_);
  if (!begin_getting(lock, deadline)) return Begin::kBusy;
  refresh(epoch);
  if (!closing_.empty() && closed(offset, length, for_write ? nfs4::IoMode::kReadWrite : nfs4::IoMode::kRead))
    return Begin::kBusy;
  const size_t index = find(offset);
  if (index < segments_.size() && segments_[index].offset <= offset && usable(segments_[index], for_write)) {
    return Begin::kHeld;
  }
  getting_ = true;
  getting.stateid = stateid_;
  getting.ends_lost = ends_lost_;
  getting.gap = gap_around(offset, length, for_write);
  for (const LayoutSegment& segment : segments_) getting.held_bytes += segment.length;
  return Begin::kGo;
}

// Nobody else's LAYOUTGET or LAYOUTRETURN is under way.
bool LayoutCache::begin_getting(Lock& lock, SteadyTime deadline) {
  while (getting_ || returning_ > 0) {
    // Somebody else's LAYOUTGET may bring what we need. A return is never waited for.
    if (returning_ > 0) return false;
    if (operation_done_.wait_until(lock, deadline) == std::cv_status::timeout) return false;
  }
  return true;
}

LayoutCache::Begin LayoutCache::begin_get_again(uint64_t offset, SteadyTime deadline, uint64_t epoch,
                                                Getting& getting) {
  Lock lock(mutex_);
  if (!begin_getting(lock, deadline)) return Begin::kBusy;
  refresh(epoch);
  if (has_end()) return Begin::kHeld;
  const size_t index = find(offset);
  const bool held =
      index < segments_.size() && segments_[index].offset <= offset && usable(segments_[index], true);
  if (!held || !closing_.empty()) return Begin::kBusy;
  getting_ = true;
  getting.stateid = stateid_;
  getting.ends_lost = ends_lost_;
  return Begin::kGo;
}

FileRange LayoutCache::gap_around(uint64_t offset, uint64_t length, bool for_write) const {
  uint64_t from = 0;
  uint64_t to = UINT64_MAX;
  for (const LayoutSegment& segment : segments_) {
    if (!usable(segment, for_write)) continue;
    if (segment.end() <= offset) from = std::max(from, segment.end());
    if (segment.offset >= range_end(offset, length)) to = std::min(to, segment.offset);
  }
  // Nor behind a closed gate: that is being given back.
  for (const Closing& closing : closing_) {
    if (!matches(closing.iomode, for_write ? nfs4::IoMode::kReadWrite : nfs4::IoMode::kRead)) continue;
    const uint64_t closed_end = range_end(closing.range.offset, closing.range.length);
    if (closed_end <= offset) from = std::max(from, closed_end);
    if (closing.range.offset >= range_end(offset, length)) to = std::min(to, closing.range.offset);
  }
  return {from, to - from};
}

void LayoutCache::forget_holes(FileRange range) {
  Lock lock(mutex_);
  std::erase_if(segments_, [&](const LayoutSegment& segment) {
    return segment.hole() && overlap(segment.offset, segment.length, range.offset, range.length);
  });
}

void LayoutCache::finish_get() {
  Lock lock(mutex_);
  getting_ = false;
  operation_done_.notify_all();
}

void LayoutCache::finish_get(const nfs4::Stateid& stateid, std::vector<LayoutSegment> segments,
                             std::optional<uint64_t> size, uint64_t epoch, const std::optional<End>& end) {
  {
    const Lock lock(mutex_);
    take_in(stateid, segments, size, epoch, end);
  }
  finish_get();
}

void LayoutCache::take(const nfs4::Stateid& stateid, std::vector<LayoutSegment> segments,
                       std::optional<uint64_t> size, uint64_t epoch) {
  const Lock lock(mutex_);
  take_in(stateid, segments, size, epoch, std::nullopt);
}

void LayoutCache::take_in(const nfs4::Stateid& stateid, const std::vector<LayoutSegment>& segments,
                          std::optional<uint64_t> size, uint64_t epoch, const std::optional<End>& end) {
  // From before layouts_lost(): what it grants is void.
  if (epoch < epoch_) return;
  refresh(epoch);
  // The server has ended what we held while this was on its way, and we have not heard of it. (Or we have returned all
  // of it, and the answer to that comes behind this one.)
  const bool another = stateid_ && stateid_->other != stateid.other;
  if (another && (returning_ == 0 || !segments_.empty())) clear(false);
  take_stateid(stateid);
  uint64_t granted_end = 0;
  bool writable = false;
  for (const LayoutSegment& segment : segments) {
    insert(segment);
    writable = writable || segment.writable();
    if (!segment.hole()) granted_end = std::max(granted_end, segment.end());
  }
  // Room to write that says nothing of the end may have come after it was taken from us, when there was nothing to
  // recall.
  if (end) take_end(*end);
  if (!end && writable) end_went();
  ++holdings_;
  if (size) known_size_ = std::min({*size, std::max(known_size_, granted_end), held_end()});
}

void LayoutCache::take_stateid(const nfs4::Stateid& stateid) {
  if (!stateid_ || stateid_->other != stateid.other || newer(stateid.seqid, stateid_->seqid))
    stateid_ = stateid;
}

std::vector<LayoutSegment> LayoutCache::parts_not_writable(const LayoutSegment& segment) const {
  std::vector<LayoutSegment> parts;
  uint64_t position = segment.offset;
  for (const LayoutSegment& held : segments_) {
    if (!usable(held, true) || !overlap(held.offset, held.length, segment.offset, segment.length)) continue;
    if (held.offset > position) parts.push_back(segment.part(position, held.offset));
    position = std::max(position, held.end());
  }
  if (position < segment.end()) parts.push_back(segment.part(position, segment.end()));
  return parts;
}

void LayoutCache::carve(FileRange range, nfs4::IoMode iomode) {
  std::vector<LayoutSegment> kept;
  kept.reserve(segments_.size() + 2);
  for (const LayoutSegment& held : segments_) {
    if (!matches(iomode, held.iomode) || !overlap(held.offset, held.length, range.offset, range.length)) {
      kept.push_back(held);
      continue;
    }
    if (held.offset < range.offset) kept.push_back(held.part(held.offset, range.offset));
    if (range.end() < held.end()) kept.push_back(held.part(range.end(), held.end()));
  }
  segments_ = std::move(kept);
}

void LayoutCache::insert(const LayoutSegment& segment) {
  // A read-write segment serves reads too and is never replaced by a read-only one.
  const std::vector<LayoutSegment> parts =
      segment.writable() ? std::vector{segment} : parts_not_writable(segment);
  for (const LayoutSegment& part : parts) {
    carve({part.offset, part.length});
    const auto where =
        std::upper_bound(segments_.begin(), segments_.end(), part,
                         [](const LayoutSegment& a, const LayoutSegment& b) { return a.offset < b.offset; });
    segments_.insert(where, part);
  }
}

void LayoutCache::remove(nfs4::IoMode iomode, FileRange range) {
  carve(range, iomode);
  some_went();
}

bool LayoutCache::round_out(nfs4::IoMode iomode, FileRange& range) const {
  const FileRange asked = range;
  uint64_t end = range_end(asked.offset, asked.length);
  bool any = false;
  for (const LayoutSegment& segment : segments_) {
    if (!matches(iomode, segment.iomode)) continue;
    if (!overlap(segment.offset, segment.length, asked.offset, asked.length)) continue;
    any = true;
    range.offset = std::min(range.offset, segment.offset);
    end = std::max(end, segment.end());
  }
  range.length = end - range.offset;
  return any;
}

LayoutCache::Recall LayoutCache::begin_recall(const nfs4::Stateid& stateid, nfs4::IoMode iomode,
                                              FileRange& range) {
  Lock lock(mutex_);
  end_went();
  if (!stateid_ || stateid_->other != stateid.other) {
    return getting_ ? Recall::kDelay : Recall::kNothing;
  }
  // Known + 1 is the recall's own number. More: the reply to our own operation, sent before, has not come
  // yet. To a LAYOUTGET: it may grant what is recalled. A LAYOUTRETURN's changes nothing of what is held, and
  // its COMPOUND may be the one that the recall is sent for.
  const uint32_t next = stateid_->seqid == UINT32_MAX ? 1 : stateid_->seqid + 1;
  if (getting_ && newer(stateid.seqid, next)) return Recall::kDelay;
  take_stateid(stateid);
  if (!round_out(iomode, range)) return Recall::kNothing;
  closing_.push_back({iomode, range});
  return Recall::kAccepted;
}

bool LayoutCache::begin_return(nfs4::IoMode iomode, FileRange& range) {
  Lock lock(mutex_);
  if (!stateid_ || !round_out(iomode, range)) return false;
  end_went();
  closing_.push_back({iomode, range});
  return true;
}

void LayoutCache::close_gate(FileRange range) {
  Lock lock(mutex_);
  end_went();
  closing_.push_back({nfs4::IoMode::kAny, range});
}

bool LayoutCache::drain(FileRange range, SteadyTime deadline, bool with_flushes) {
  Lock lock(mutex_);
  ++drainers_;
  const bool empty = drained_.wait_until(lock, deadline, [&] { return !inside(range, with_flushes); });
  --drainers_;
  return empty;
}

std::optional<nfs4::Stateid> LayoutCache::start_return(nfs4::IoMode iomode, FileRange range,
                                                       SteadyTime deadline) {
  Lock lock(mutex_);
  // A LAYOUTGET that does not come back must not hold up a recall: then both are under way, which the RFC
  // allows; as are two returns, each of its own range.
  operation_done_.wait_until(lock, deadline, [&] { return !getting_; });
  ++returning_;
  remove(iomode, range);
  return stateid_;
}

void LayoutCache::finish_return(const nfs4::Stateid& sent, const std::optional<nfs4::Stateid>& left) {
  Lock lock(mutex_);
  const bool another = stateid_ && stateid_->other != sent.other;
  if (!another && left) take_stateid(*left);
  if (!another && !left) clear(true);
  --returning_;
  operation_done_.notify_all();
}

void LayoutCache::finish_return() {
  const Lock lock(mutex_);
  --returning_;
  operation_done_.notify_all();
}

void LayoutCache::open_gate(nfs4::IoMode iomode, FileRange range) {
  Lock lock(mutex_);
  const auto found = std::find(closing_.begin(), closing_.end(), Closing{iomode, range});
  if (found != closing_.end()) closing_.erase(found);
}

std::optional<nfs4::Stateid> LayoutCache::stateid() const {
  Lock lock(mutex_);
  return stateid_;
}

uint64_t LayoutCache::incarnation() const {
  Lock lock(mutex_);
  return incarnation_;
}

uint64_t LayoutCache::next_held(uint64_t offset) const {
  const Lock lock(mutex_);
  for (size_t index = find(offset); index < segments_.size(); ++index) {
    if (segments_[index].offset > offset) return segments_[index].offset;
  }
  return UINT64_MAX;
}

bool LayoutCache::holds_anything() const {
  Lock lock(mutex_);
  return !segments_.empty();
}

std::vector<Device*> LayoutCache::devices(FileRange range) const {
  Lock lock(mutex_);
  std::vector<Device*> devices;
  for (const LayoutSegment& segment : segments_) {
    if (!segment.hole() && overlap(segment.offset, segment.length, range.offset, range.length) &&
        std::find(devices.begin(), devices.end(), segment.device) == devices.end())
      devices.push_back(segment.device);
  }
  return devices;
}

bool LayoutCache::getting() const {
  Lock lock(mutex_);
  return getting_;
}

LayoutCache::Held LayoutCache::held() const {
  Lock lock(mutex_);
  Held held{.segments = segments_.size()};
  for (const LayoutSegment& segment : segments_) {
    if (segment.read.grant != 0) held.readable_bytes += segment.length;
    if (segment.writable()) held.writable_bytes += segment.length;
  }
  return held;
}

void LayoutCache::pause_until(SteadyTime time) {
  Lock lock(mutex_);
  paused_until_ = std::max(paused_until_, time);
}

bool LayoutCache::paused(SteadyTime now) const {
  Lock lock(mutex_);
  return now < paused_until_;
}

}  // namespace pnfsrdma::initiator

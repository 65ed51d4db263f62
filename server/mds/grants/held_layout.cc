// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/held_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "shared/base/check.h"

namespace pnfsrdma::mds {

namespace {

bool selects(IoMode mode, bool writable) {
  return mode == IoMode::kAny || (mode == IoMode::kReadWrite) == writable;
}

// How far `seqid` lies behind `newest` in a number space without 0. RFC 8881, 3.3.12: compared as serial
// numbers.
uint32_t lag(uint32_t seqid, uint32_t newest) {
  const uint32_t distance = newest - seqid;
  return newest < seqid ? distance - 1 : distance;  // stepped over 0
}

}  // namespace

const LayoutStateid& HeldLayout::advance() {
  stateid_.seqid = stateid_.seqid == UINT32_MAX ? 1 : stateid_.seqid + 1;
  return stateid_;
}

const LayoutStateid& HeldLayout::recall() {
  newest_recall_ = advance().seqid;
  return stateid_;
}

void HeldLayout::resume(uint32_t seqid, uint32_t newest_recall, uint64_t end_token) {
  stateid_.seqid = seqid;
  newest_recall_ = newest_recall;
  if (newest_recall != 0) completed_recall_ = newest_recall;
  end_token_ = end_token;
}

void HeldLayout::for_each_unconfirmed(const std::function<void(HeldGrant&)>& visit) {
  for (HeldGrant& grant : grants_) {
    if (!grant.confirmed) visit(grant);
  }
}

const HeldGrant* HeldLayout::find(const HeldGrant& grant) const {
  for (const HeldGrant& held : grants_near(grant.file)) {
    if (held.same(grant)) return &held;
  }
  return nullptr;
}

std::vector<const HeldGrant*> HeldLayout::grants_in(const ByteRange& range) const {
  std::vector<const HeldGrant*> found;
  for (const HeldGrant& grant : grants_near(range)) {
    if (grant.file.overlaps(range)) found.push_back(&grant);
  }
  return found;
}

nfs4::Status HeldLayout::check_seqid(uint32_t seqid, uint32_t window) const {
  if (seqid == 0) return nfs4::Status::kBadStateid;
  const uint32_t behind = lag(seqid, stateid_.seqid);
  if (behind > UINT32_MAX / 2) return nfs4::Status::kBadStateid;  // from the future: we never gave it out
  return behind > window ? nfs4::Status::kOldStateid : nfs4::Status::kOk;
}

bool HeldLayout::older_than_completed_recall(uint32_t seqid) const {
  if (!completed_recall_) return false;
  return lag(seqid, stateid_.seqid) > lag(*completed_recall_, stateid_.seqid);
}

std::pair<size_t, size_t> HeldLayout::near(const ByteRange& range) const {
  const auto ends_behind = [](uint64_t offset, const Reach& reach) { return offset < reach.any; };
  const auto begins_before = [](const HeldGrant& grant, uint64_t offset) {
    return grant.file.begin < offset;
  };
  const auto first = std::upper_bound(reaches_.begin(), reaches_.end(), range.begin, ends_behind);
  const size_t from = first - reaches_.begin();
  const auto last = std::lower_bound(grants_.begin() + static_cast<ptrdiff_t>(from), grants_.end(), range.end,
                                     begins_before);
  return {from, last - grants_.begin()};
}

std::span<const HeldGrant> HeldLayout::grants_near(const ByteRange& range) const {
  const auto [first, last] = near(range);
  return std::span(grants_).subspan(first, last - first);
}

void HeldLayout::add_grant(HeldGrant grant) {
  CHECK(!grant.file.empty());
  grant.held.add(grant.file);
  holes_.remove(grant.file);
  const auto place =
      std::upper_bound(grants_.begin(), grants_.end(), grant.file.begin,
                       [](uint64_t offset, const HeldGrant& other) { return offset < other.file.begin; });
  const auto at = place - grants_.begin();
  grants_.insert(place, std::move(grant));
  reaches_.insert(reaches_.begin() + at, Reach{});
  renew_reaches(at, at + 1);
}

void HeldLayout::renew_reaches(size_t first, size_t last) {
  Reach reach = first == 0 ? Reach{} : reaches_[first - 1];
  for (size_t at = first; at < grants_.size(); ++at) {
    const HeldGrant& grant = grants_[at];
    reach.any = std::max(reach.any, grant.file.end);
    if (grant.writable) reach.writable = std::max(reach.writable, grant.file.end);
    // From here on it is as it was.
    if (at >= last && reaches_[at] == reach) return;
    reaches_[at] = reach;
  }
}

std::vector<ByteRange> HeldLayout::add_hole(const ByteRange& range) {
  RangeSet fresh;
  fresh.add(range);
  for (const ByteRange& known : holes_.within(range)) fresh.remove(known);
  holes_.add(range);
  return fresh.all();
}

std::vector<HeldGrant> HeldLayout::take_out(std::pair<size_t, size_t> places,
                                            const std::function<bool(HeldGrant&)>& goes) {
  const auto [first, last] = places;
  std::vector<HeldGrant> taken;
  size_t kept = first;
  for (size_t at = first; at < last; ++at) {
    HeldGrant& grant = grants_[at];
    if (goes(grant)) {
      taken.push_back(std::move(grant));
    } else {
      if (kept != at) grants_[kept] = std::move(grant);
      ++kept;
    }
  }
  if (taken.empty()) return taken;
  const auto erase = [kept = static_cast<ptrdiff_t>(kept), last = static_cast<ptrdiff_t>(last)](auto& all) {
    all.erase(all.begin() + kept, all.begin() + last);
  };
  erase(grants_);
  erase(reaches_);
  renew_reaches(first, kept);
  return taken;
}

std::vector<HeldGrant> HeldLayout::take_back(std::span<const HeldGrant> grants) {
  if (grants.empty()) return {};
  std::set<std::pair<uint64_t, uint64_t>> named;
  ByteRange hull = grants.front().file;
  for (const HeldGrant& grant : grants) {
    named.emplace(grant.logical, grant.grant);
    hull = {std::min(hull.begin, grant.file.begin), std::max(hull.end, grant.file.end)};
  }
  return take_out(near(hull),
                  [&](const HeldGrant& held) { return named.contains({held.logical, held.grant}); });
}

const HeldGrant* HeldLayout::at(uint64_t offset, IoMode mode) const {
  if (offset == kEndOfFile) return nullptr;
  for (const HeldGrant& grant : grants_near({offset, offset + 1})) {
    // One of which something was returned is not handed out again: the client may be about to return the
    // rest.
    if (offset < grant.file.end && selects(mode, grant.writable) && grant.held.contains(grant.file))
      return &grant;
  }
  return nullptr;
}

std::optional<ByteRange> HeldLayout::hole_at(uint64_t offset) const {
  return holes_.from(offset);
}

std::vector<ByteRange> HeldLayout::gaps(const ByteRange& range, IoMode mode) const {
  RangeSet missing;
  missing.add(range);
  for (const HeldGrant& grant : grants_near(range)) {
    if (selects(mode, grant.writable) && grant.held.contains(grant.file)) missing.remove(grant.file);
  }
  return missing.all();
}

bool HeldLayout::may_write(const ByteRange& range) const {
  RangeSet missing;
  missing.add(range);
  for (const HeldGrant& grant : grants_near(range)) {
    if (!grant.writable) continue;
    if (grant.held.contains(grant.file)) {
      missing.remove(grant.file);
      continue;
    }
    for (const ByteRange& part : grant.held.within(range)) missing.remove(part);
  }
  return missing.empty();
}

bool HeldLayout::holds(const ByteRange& range, IoMode mode) const {
  if (mode != IoMode::kReadWrite && holes_.overlaps(range)) return true;
  return std::ranges::any_of(grants_near(range), [&](const HeldGrant& grant) {
    return selects(mode, grant.writable) && grant.held.overlaps(range);
  });
}

ByteRange HeldLayout::rounded_out(ByteRange range) const {
  if (range.empty()) return range;
  for (bool grew = true; grew;) {
    grew = false;
    // What is cut lies over an end.
    for (const uint64_t inside : {range.begin, range.end - 1}) {
      for (const HeldGrant& grant : grants_near({inside, inside + 1})) {
        if (!grant.file.overlaps(range) || range.contains(grant.file)) continue;
        range = {std::min(range.begin, grant.file.begin), std::max(range.end, grant.file.end)};
        grew = true;
      }
    }
  }
  return range;
}

std::vector<HeldGrant> HeldLayout::give_back(const ByteRange& range, IoMode mode) {
  // Whoever gives back anything to write by gives the end back with it.
  if (mode != IoMode::kRead) end_token_ = 0;
  if (mode != IoMode::kReadWrite) holes_.remove(range);
  if (mode == IoMode::kAny && range == ByteRange{0, kEndOfFile}) {
    reaches_.clear();
    return std::exchange(grants_, {});  // however many they are
  }
  return take_out(near(range), [&](HeldGrant& grant) {
    if (selects(mode, grant.writable)) grant.held.remove(range);
    return grant.held.empty();
  });
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fuse-client/inode.h"
#include "shared/base/check.h"
#include "shared/nfs4/snapshot_list.h"

// What an Inode knows that is a directory: names, the listing, its delegation.
namespace pnfsrdma::fuse_client {

void Inode::name_is_absent(std::string_view name, uint64_t change) {
  change_names([&](DirectoryNames& names) { names.absent(name, change); });
}

void Inode::name_is_found(std::string_view name, uint64_t change) {
  change_names([&](DirectoryNames& names) { names.found(name, change); });
}

void Inode::names_are_found(std::span<const std::string> names, uint64_t change) {
  change_names([&](DirectoryNames& known) {
    for (const std::string& name : names) known.found(name, change);
  });
}

void Inode::names_complete(const std::unordered_set<std::string>& names, uint64_t change) {
  change_names([&](DirectoryNames& known) { known.complete(names, change); });
}

void Inode::change_names(const std::function<void(DirectoryNames&)>& change) {
  const std::lock_guard lock(mutex_);
  if (!names_) names_ = std::make_unique<DirectoryNames>();
  change(*names_);
}

void Inode::forget_names() {
  const std::lock_guard lock(mutex_);
  if (names_) names_->forget();
}

bool Inode::lacks_name(std::string_view name, SteadyTime now, const AttributeTimeouts& timeouts,
                       SteadyTime lease_end) const {
  const std::lock_guard lock(mutex_);
  const Milliseconds least = std::min(timeouts.file_min, timeouts.directory_min);
  return knows_names(now, least, lease_end) && names_->lacks(name, known_->change);
}

std::optional<SteadyTime> Inode::found_name_at(std::string_view name, SteadyTime now,
                                               const AttributeTimeouts& timeouts,
                                               SteadyTime lease_end) const {
  const std::lock_guard lock(mutex_);
  // It comes and goes with the snapshots, which change no directory.
  const bool is_of_snapshots = name == nfs4::kSnapshotListName;
  if (!knows_names(now, timeouts.directory_min, is_of_snapshots ? SteadyTime() : lease_end) ||
      !names_->has_found(name, known_->change)) {
    return std::nullopt;
  }
  return known_at_;
}

bool Inode::knows_names(SteadyTime now, Milliseconds at_most, SteadyTime lease_end) const {
  if (!names_ || !known_ || names_in_doubt_) return false;
  return now - known_at_ < at_most || is_delegated(now, lease_end);
}

bool Inode::is_delegated(SteadyTime now, SteadyTime lease_end) const {
  return now < lease_end && delegation_.covers(known_at_);
}

void Inode::listed(uint64_t change, SteadyTime asked_at) {
  const std::lock_guard lock(mutex_);
  listing_ = Listing{change, asked_at};
}

bool Inode::keeps_listing(SteadyTime now, const AttributeTimeouts& timeouts, SteadyTime lease_end) const {
  const std::lock_guard lock(mutex_);
  return listing_ && is_as_listed(*listing_, now, timeouts, lease_end);
}

bool Inode::is_as_listed(uint64_t change, SteadyTime asked_at, SteadyTime now,
                         const AttributeTimeouts& timeouts, SteadyTime lease_end) const {
  const std::lock_guard lock(mutex_);
  return is_as_listed(Listing{change, asked_at}, now, timeouts, lease_end);
}

bool Inode::is_as_listed(const Listing& listing, SteadyTime now, const AttributeTimeouts& timeouts,
                         SteadyTime lease_end) const {
  if (!known_ || names_in_doubt_ || known_->change != listing.change) return false;
  if (is_delegated(now, lease_end)) return true;
  const Milliseconds least = std::min(timeouts.file_min, timeouts.directory_min);
  return now - listing.asked_at < least && now - known_at_ < least;
}

void Inode::forget_listing() {
  const std::lock_guard lock(mutex_);
  listing_.reset();
}

bool Inode::listing_is_old() {
  const std::lock_guard lock(mutex_);
  if (!listing_ || !known_ || known_->change == listing_->change) return false;
  listing_.reset();
  return true;
}

bool Inode::wants_directory_delegation(AskedFor what, SteadyTime now) {
  const std::lock_guard lock(mutex_);
  const bool is_often = what == AskedFor::kListing ? ++listings_asked_ >= 2
                                                   : names_asked_.again(now, kInARow) >= kLookUpsInARow;
  if (!is_often || delegation_.is_held() || name_removed_) return false;
  return !no_delegation_until_ || now >= *no_delegation_until_;
}

void Inode::begin_asking() {
  const std::lock_guard lock(mutex_);
  ++asking_;
}

void Inode::end_asking() {
  const std::lock_guard lock(mutex_);
  CHECK(asking_ > 0);
  --asking_;
}

void Inode::directory_delegation_refused(SteadyTime now) {
  const std::lock_guard lock(mutex_);
  no_delegation_until_ = now + kNotSoSoonAgain;
}

bool Inode::is_directory_delegated(SteadyTime now, SteadyTime lease_end) const {
  const std::lock_guard lock(mutex_);
  return now < lease_end && delegation_.in_force() && known_ && S_ISDIR(known_->status.st_mode);
}

void Inode::drop_delegation() {
  const std::lock_guard lock(mutex_);
  (void)delegation_.end();
  if (const auto owed = delegation_.begin_return()) (void)delegation_.returned(owed->stateid);
}

bool Inode::lapses_in_a_row(SteadyTime now) {
  const std::lock_guard lock(mutex_);
  if (lapses_.again(now, kInARow) < 2) return false;
  lapses_.times = 1;  // the next one is the second again
  return true;
}

void Inode::directory_opened() {
  const std::lock_guard lock(mutex_);
  ++directory_opens_;
}

void Inode::directory_closed() {
  const std::lock_guard lock(mutex_);
  CHECK(directory_opens_ > 0);
  --directory_opens_;
}

void Inode::name_removed() {
  const std::lock_guard lock(mutex_);
  name_removed_ = true;
}

bool Inode::may_outlive_its_name() const {
  const std::lock_guard lock(mutex_);
  return directory_opens_ > 0 || (name_removed_ && known_ && S_ISDIR(known_->status.st_mode));
}

}  // namespace pnfsrdma::fuse_client

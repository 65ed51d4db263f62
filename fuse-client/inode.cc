// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/inode.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/initiator/cancellation.h"
#include "shared/nfs4/open_operations.h"

namespace pnfsrdma::fuse_client {

Milliseconds Inode::learn(const client::FileAttributes& attributes, SteadyTime asked_at,
                          const AttributeTimeouts& timeouts, const std::optional<Versions>& versions) {
  const std::lock_guard lock(mutex_);
  if (!take_in(attributes, asked_at, timeouts)) return Milliseconds(0);
  if (versions) known_versions_ = *versions;
  if (versions && versions->name_changes < newest_change_) believed_for_ = Milliseconds(0);
  return believed_for_;
}

void Inode::learn_with_write(const client::FileAttributes& attributes, SteadyTime asked_at,
                             const AttributeTimeouts& timeouts, uint64_t data_version) {
  const std::lock_guard lock(mutex_);
  // As to names they are believed if those of before were.
  if (take_in(attributes, asked_at, timeouts)) known_versions_.data = data_version;
}

void Inode::born(std::optional<timespec> birth) {
  const std::lock_guard lock(mutex_);
  birth_ = birth;
}

bool Inode::knows_birth() const {
  const std::lock_guard lock(mutex_);
  return birth_.has_value();
}

std::optional<timespec> Inode::birth() const {
  const std::lock_guard lock(mutex_);
  return birth_.value_or(std::nullopt);
}

bool Inode::take_in(const client::FileAttributes& attributes, SteadyTime asked_at,
                    const AttributeTimeouts& timeouts) {
  const bool asked_first = known_ && asked_at < known_at_;
  const bool changed_first = known_ && attributes.change < known_->change;
  if (asked_first && attributes.change <= known_->change) return false;
  const bool is_directory = S_ISDIR(attributes.status.st_mode);
  const Milliseconds least = is_directory ? timeouts.directory_min : timeouts.file_min;
  // Who has it open waits for what others write (tail -f).
  const Milliseconds most = is_directory      ? timeouts.directory_max
                            : open_at_server_ ? timeouts.file_min
                                              : timeouts.file_max;
  const bool same = known_ && known_->change == attributes.change;
  believed_for_ = same ? std::clamp(believed_for_ * 2, least, most) : least;
  if (asked_first != changed_first) believed_for_ = Milliseconds(0);
  known_ = attributes;
  names_in_doubt_ = false;
  if (!asked_first) known_at_ = asked_at;
  return true;
}

std::optional<Inode::Believed> Inode::believed(SteadyTime now, std::optional<uint64_t> data_version,
                                               uint64_t lost_link, SteadyTime lease_end) const {
  const std::lock_guard lock(mutex_);
  if (!known_ || believed_for_ == Milliseconds(0)) return std::nullopt;
  const bool is_delegated = now < lease_end && delegation_.covers(known_at_);
  const SteadyTime until = is_delegated ? now + believed_for_ : known_at_ + believed_for_;
  if (now >= until) return std::nullopt;
  if (data_version && *data_version != known_versions_.data) return std::nullopt;
  const bool has_links = !S_ISDIR(known_->status.st_mode) && known_->status.st_nlink > 1;
  if (has_links && known_versions_.name_changes < lost_link) return std::nullopt;
  return Believed{*known_, std::chrono::duration_cast<Milliseconds>(until - now), known_at_};
}

bool Inode::name_changed(uint64_t asked, uint64_t number) {
  const std::lock_guard lock(mutex_);
  const bool alone = newest_change_ <= asked;
  newest_change_ = std::max(newest_change_, number);
  believed_for_ = Milliseconds(0);
  return alone;
}

void Inode::expire() {
  const std::lock_guard lock(mutex_);
  believed_for_ = Milliseconds(0);
}

bool Inode::has_type(mode_t type) const {
  const std::lock_guard lock(mutex_);
  return known_ && (known_->status.st_mode & S_IFMT) == type;
}

bool Inode::has_answer_of(SteadyTime asked_at) const {
  const std::lock_guard lock(mutex_);
  return known_ && asked_at <= known_at_;
}

bool Inode::forgotten_by_kernel() {
  const std::lock_guard lock(mutex_);
  opened_at_.reset();
  told_change_.reset();
  told_size_.reset();
  told_anew_at_.reset();
  listing_.reset();
  if (known_) pages_.dropped(known_->status.st_mtim);
  pages_filled_ = false;
  return known_ && believed_for_ > Milliseconds(0) && !name_removed_ && !name_is_lost_;
}

size_t Inode::memory() const {
  constexpr size_t kPlaces = 400;  // in the table and its order, the name
  const std::lock_guard lock(mutex_);
  return sizeof(Inode) + kPlaces + (names_ ? names_->memory() : 0);
}

void Inode::named(std::shared_ptr<const Inode> directory, std::string_view name) {
  auto known = std::make_shared<const Name>(std::move(directory), std::string(name));
  const std::lock_guard lock(mutex_);
  if (!known_ || !S_ISREG(known_->status.st_mode)) return;
  name_.swap(known);
  name_is_lost_ = false;
}

std::shared_ptr<const Inode::Name> Inode::name() const {
  const std::lock_guard lock(mutex_);
  return name_;
}

void Inode::lose_name(const std::shared_ptr<const Name>& name) {
  const std::lock_guard lock(mutex_);
  if (name_ != name) return;  // there is a newer one
  name_ = nullptr;
  name_is_lost_ = true;
}

bool Inode::name_is_lost() const {
  const std::lock_guard lock(mutex_);
  return name_is_lost_;
}

void Inode::found_as(const Inode& directory, std::string_view name, SteadyTime until) {
  const std::lock_guard lock(mutex_);
  if (!name_ || !known_ || known_->status.st_nlink > 1) return;
  if (name_->directory.get() != &directory || name_->name != name) old_name_until_ = until;
}

bool Inode::has_old_name(SteadyTime now) const {
  const std::lock_guard lock(mutex_);
  return now < old_name_until_;
}

std::optional<mode_t> Inode::mode_without_privileges() const {
  const std::lock_guard lock(mutex_);
  if (!known_) return std::nullopt;
  const mode_t mode = known_->status.st_mode & 07777;
  mode_t cleared = mode & ~static_cast<mode_t>(S_ISUID);
  // Without group execution the bit meant mandatory locking, which a write leaves alone.
  if ((mode & S_IXGRP) != 0) cleared &= ~static_cast<mode_t>(S_ISGID);
  if (cleared == mode) return std::nullopt;
  return cleared;
}

Inode::CacheVerdict Inode::at_open(const client::FileAttributes& attributes, SteadyTime asked_at) {
  const std::lock_guard lock(mutex_);
  CacheVerdict verdict;
  verdict.keep_pages = opened_at_ == pages_.foreign_changes();
  verdict.kernel_attributes_old =
      (told_anew_at_ && asked_at - *told_anew_at_ < kOnItsWay) ||
      (told_change_ && told_change_ != attributes.change) ||
      (told_size_ && *told_size_ != static_cast<uint64_t>(attributes.status.st_size));
  opened_at_ = pages_.foreign_changes();
  return verdict;
}

bool Inode::pages_renewed_at(uint64_t foreign_changes) const {
  const std::lock_guard lock(mutex_);
  return renewed_at_ == foreign_changes;
}

void Inode::pages_renewed(uint64_t foreign_changes) {
  const std::lock_guard lock(mutex_);
  renewed_at_ = foreign_changes;
}

void Inode::judge_pages(const ChangeAnswer& answer, timespec modified) {
  const std::lock_guard lock(mutex_);
  pages_.take_in(answer, modified);
}

void Inode::doubt_pages() {
  const std::lock_guard lock(mutex_);
  pages_.doubt();
}

timespec Inode::page_time() const {
  const std::lock_guard lock(mutex_);
  return pages_.time();
}

uint64_t Inode::foreign_changes() const {
  const std::lock_guard lock(mutex_);
  return pages_.foreign_changes();
}

std::optional<timespec> Inode::page_time_instead_of(timespec modified, uint64_t size, PageAsker asker) {
  const std::lock_guard lock(mutex_);
  return pages_.instead_of(modified, size, asker);
}

void Inode::told_kernel(const client::FileAttributes& attributes, SteadyTime now) {
  pages_filled();
  const std::lock_guard lock(mutex_);
  if (told_change_ && told_change_ != attributes.change) told_anew_at_ = now;
  told_change_ = attributes.change;
  told_size_ = static_cast<uint64_t>(attributes.status.st_size);
}

void Inode::begin_open() {
  std::unique_lock lock(mutex_);
  // Bounded: a CLOSE is a call to the server like any other, which ends by its own rules.
  opens_changed_.wait(lock, [this] { return !closing_; });
  ++opening_;
  delegation_.used_again();
}

std::optional<client::FileAttributes> Inode::last_known() const {
  const std::lock_guard lock(mutex_);
  return known_;
}

std::optional<SteadyTime> Inode::asked_at() const {
  const std::lock_guard lock(mutex_);
  return known_ ? std::optional(known_at_) : std::nullopt;
}

bool Inode::begin_open_if_wanted() {
  std::unique_lock lock(mutex_);
  while (closing_) {
    if (initiator::CancellationScope::cancelled()) return false;
    opens_changed_.wait_for(lock, std::chrono::seconds(1));
  }
  ++opening_;
  delegation_.used_again();
  return true;
}

bool Inode::open_failed() {
  const std::lock_guard lock(mutex_);
  CHECK(opening_ > 0);
  --opening_;
  return has_ended();
}

void Inode::opened(const nfs4::Stateid& stateid, uint32_t share_access,
                   const initiator::Credential& credential, std::optional<uint32_t> used_for) {
  const std::lock_guard lock(mutex_);
  CHECK(opening_ > 0);
  --opening_;
  ++opens_;
  // Answers of parallel OPENs may come in any order: the highest number is the newest (RFC 8881, 8.2.2).
  const bool other = !open_at_server_ || stateid_.other != stateid.other;
  if (other || static_cast<int32_t>(stateid.seqid - stateid_.seqid) > 0) stateid_ = stateid;
  if (other) share_access_ = 0;
  open_at_server_ = true;
  broken_ = false;
  share_access_ |= share_access;
  was_read_ |= used_for.value_or(share_access) == nfs4::kShareAccessRead;
  was_written_ |= used_for.value_or(share_access) == nfs4::kShareAccessBoth;
  if ((share_access & nfs4::kShareAccessRead) != 0) reader_ = credential;
  if ((share_access & nfs4::kShareAccessWrite) != 0) writer_ = credential;
}

void Inode::set_data(const std::shared_ptr<initiator::FileIo>& data) {
  const std::lock_guard lock(mutex_);
  if (data_.lock() == data) return;
  data_ = data;
  ++data_paths_;
  known_versions_.data = kNoVersion;  // it was another one's
}

void Inode::data_is_as_known(uint64_t data_version) {
  const std::lock_guard lock(mutex_);
  known_versions_.data = data_version;
}

uint64_t Inode::data_paths() const {
  const std::lock_guard lock(mutex_);
  return data_paths_;
}

void Inode::data_changes() {
  const std::lock_guard lock(mutex_);
  ++data_changes_;
}

uint64_t Inode::data_changes_count() const {
  const std::lock_guard lock(mutex_);
  return data_changes_;
}

bool Inode::is_as_read(const FirstBytes& read, SteadyTime now, const AttributeTimeouts& timeouts) const {
  const std::lock_guard lock(mutex_);
  return known_ && known_->change == read.change && data_changes_ == read.data_changes &&
         now - read.asked_at < timeouts.file_min;
}

bool Inode::has_kept_pages() const {
  const std::lock_guard lock(mutex_);
  return opened_at_ == pages_.foreign_changes();
}

std::shared_ptr<initiator::FileIo> Inode::data() const {
  const std::lock_guard lock(mutex_);
  return data_.lock();
}

void Inode::data_settled(uint64_t data_version) {
  const std::lock_guard lock(mutex_);
  if (known_versions_.data != data_version) believed_for_ = Milliseconds(0);
}

bool Inode::release() {
  const std::lock_guard lock(mutex_);
  CHECK(opens_ > 0);
  --opens_;
  return has_ended();
}

bool Inode::has_ended() {
  if (opens_ > 0 || opening_ > 0 || !open_at_server_ || closing_) return false;
  closing_ = true;
  return true;
}

bool Inode::settled() {
  bool keeps = false;
  {
    const std::lock_guard lock(mutex_);
    closing_ = false;
    keeps = keeps_open();
  }
  opens_changed_.notify_all();
  return keeps;
}

// For the next open.
bool Inode::keeps_open() const {
  return delegation_.in_force() && share_access_ == delegation_.allows() && !broken_;
}

std::optional<OwedToServer> Inode::begin_close(bool may_return) {
  const std::lock_guard lock(mutex_);
  OwedToServer owed;
  if (!keeps_open() && has_ended())
    owed.open = {stateid_, (share_access_ & nfs4::kShareAccessWrite) != 0 ? writer_ : reader_};
  if (may_return) owed.delegation = delegation_.begin_return();
  if (!owed.open && !owed.delegation) return std::nullopt;
  return owed;
}

uint32_t Inode::wanted_delegation(uint32_t share_access) const {
  const std::lock_guard lock(mutex_);
  return wanted(share_access);
}

bool Inode::asks_to_lock_here(SteadyTime now) {
  const std::lock_guard lock(mutex_);
  if (asked_to_lock_ && now - *asked_to_lock_ < kAskToLockEach) return false;
  if (wanted(nfs4::kShareAccessBoth) != nfs4::kShareAccessWantWriteDelegation || locks_.any()) return false;
  asked_to_lock_ = now;
  return true;
}

uint32_t Inode::wanted(uint32_t share_access) const {
  const bool has_one_name = known_ && known_->status.st_nlink == 1;
  if (delegation_.is_held() || !has_one_name) return nfs4::kShareAccessWantNoDelegation;
  if (share_access == nfs4::kShareAccessRead && was_read_) return nfs4::kShareAccessWantReadDelegation;
  if (share_access == nfs4::kShareAccessBoth && was_written_) return nfs4::kShareAccessWantWriteDelegation;
  return nfs4::kShareAccessWantNoDelegation;
}

bool Inode::delegated(const FileDelegation::Grant& grant) {
  const std::lock_guard lock(mutex_);
  delegation_.take(grant);
  return delegation_.in_force();
}

void Inode::admit(const initiator::Credential& user, uint32_t share_access, SteadyTime asked_at) {
  const std::lock_guard lock(mutex_);
  delegation_.admit(user, share_access, asked_at);
}

bool Inode::has_delegation(const nfs4::Stateid& stateid) const {
  const std::lock_guard lock(mutex_);
  return delegation_.is(stateid);
}

std::optional<nfs4::Stateid> Inode::delegation() const {
  const std::lock_guard lock(mutex_);
  return delegation_.stateid();
}

// In one step: between two questions the OPEN may end that brings it.
Inode::Holds Inode::holds_delegation(const nfs4::Stateid& stateid) const {
  const std::lock_guard lock(mutex_);
  if (delegation_.is(stateid)) return Holds::kYes;
  return opening_ > 0 || asking_ > 0 ? Holds::kPerhapsSoon : Holds::kNo;
}

std::optional<client::FileAttributes> Inode::open_under_delegation(const initiator::Credential& user,
                                                                   uint32_t share_access, SteadyTime now,
                                                                   SteadyTime lease_end) {
  const std::lock_guard lock(mutex_);
  if (!known_ || now >= lease_end || !delegation_.covers(known_at_) ||
      !delegation_.admits(user, share_access)) {
    return std::nullopt;
  }
  // An operation of ours on the file's names or data, of which the attributes do not tell.
  if (believed_for_ == Milliseconds(0) || known_->status.st_nlink != 1) return std::nullopt;
  if (!open_at_server_ || broken_ || (share_access & ~share_access_) != 0) return std::nullopt;
  CHECK(opening_ > 0);
  --opening_;
  ++opens_;
  if ((share_access & nfs4::kShareAccessRead) != 0) reader_ = user;
  if ((share_access & nfs4::kShareAccessWrite) != 0) writer_ = user;
  return known_;
}

std::optional<client::FileAttributes> Inode::told_of_held() const {
  const std::lock_guard lock(mutex_);
  if (!delegation_.writes() || !known_) return std::nullopt;
  client::FileAttributes told = *known_;
  told.change = delegation_.change();
  return told;
}

void Inode::rights_changed(SteadyTime now) {
  const std::lock_guard lock(mutex_);
  delegation_.forget_users(now);
}

bool Inode::delegation_ends_with_close() const {
  const std::lock_guard lock(mutex_);
  return delegation_.ends_with_close();
}

bool Inode::delegation_has_ended() const {
  const std::lock_guard lock(mutex_);
  return delegation_.has_ended();
}

bool Inode::holds_data() const {
  const std::shared_ptr<initiator::FileIo> known = data();
  return known && known->holds();
}

std::optional<initiator::OpenState> Inode::write_delegation() {
  const std::lock_guard lock(mutex_);
  const auto held = delegation_.to_write_by();
  if (!held) return std::nullopt;
  return initiator::OpenState{held->stateid, held->user};
}

bool Inode::may_hold() {
  const std::lock_guard lock(mutex_);
  return delegation_.writes() && open_at_server_ && !broken_;
}

bool Inode::end_delegation() {
  const std::lock_guard lock(mutex_);
  const bool ends_with_close = delegation_.ends_with_close();
  if (!delegation_.end()) return false;
  // Others may have changed the file when the next one asks. (Not because it ends by itself.)
  if (!ends_with_close) believed_for_ = Milliseconds(0);
  names_in_doubt_ = known_ && S_ISDIR(known_->status.st_mode);
  if (names_in_doubt_ && names_) names_->forget();
  return true;
}

bool Inode::delegation_returned(const nfs4::Stateid& stateid) {
  const std::lock_guard lock(mutex_);
  return delegation_.returned(stateid);
}

void Inode::delegation_reclaimed(const nfs4::Stateid& stateid) {
  const std::lock_guard lock(mutex_);
  delegation_.reclaimed(stateid);
}

bool Inode::only_we_lock(SteadyTime now, SteadyTime lease_end) const {
  return delegation_.writes() && now < lease_end && open_at_server_ && !broken_;
}

FileLocks::Verdict Inode::lock(LockOwner owner, const nfs4::LockRange& range, const FileLocks::Held& asker,
                               SteadyTime now, SteadyTime lease_end) {
  const std::lock_guard lock(mutex_);
  return only_we_lock(now, lease_end) ? locks_.lock_here(owner, range, asker) : locks_.lock_at_server();
}

FileLocks::Verdict Inode::test_lock(LockOwner owner, const nfs4::LockRange& range, SteadyTime now,
                                    SteadyTime lease_end, std::optional<FileLocks::InTheWay>& found) const {
  const std::lock_guard lock(mutex_);
  return locks_.test_here(owner, range, only_we_lock(now, lease_end), found);
}

void Inode::closed() {
  locks_.clear();
  {
    const std::lock_guard lock(mutex_);
    closing_ = false;
    open_at_server_ = false;
    share_access_ = 0;
    reader_ = writer_ = {};
  }
  opens_changed_.notify_all();
}

std::optional<initiator::OpenState> Inode::open_state(bool for_write) {
  const std::lock_guard lock(mutex_);
  const uint32_t needed = for_write ? nfs4::kShareAccessWrite : nfs4::kShareAccessRead;
  if (!open_at_server_ || broken_) return std::nullopt;
  // Seqid 0, "the newest" (RFC 8881, 8.2.2): an OPEN by another process makes every number an old one at
  // once.
  nfs4::Stateid newest = stateid_;
  newest.seqid = 0;
  if ((share_access_ & needed) != 0) return initiator::OpenState{newest, for_write ? writer_ : reader_};
  // RFC 8881, 9.1.2: a server may let a file that is open for writing be read (the rest of a page).
  if (!for_write) return initiator::OpenState{newest, writer_};
  return std::nullopt;
}

bool Inode::is_open() const {
  const std::lock_guard lock(mutex_);
  return open_at_server_;
}

std::optional<OpenToReclaim> Inode::to_reclaim() const {
  const bool is_needed = holds_data();
  const std::lock_guard lock(mutex_);
  if (!open_at_server_) return std::nullopt;
  // Kept for a delegation, which is over: it is closed soon, and a server that does not know it says so. But not before
  // its last close has settled the data.
  const bool is_kept = opens_ == 0 && opening_ == 0 && !closing_ && share_access_ == delegation_.allows();
  if (is_kept) return std::nullopt;
  const bool reads = (share_access_ & nfs4::kShareAccessRead) != 0;
  const bool writes = (share_access_ & nfs4::kShareAccessWrite) != 0;
  OpenToReclaim open{.parts = {}, .stateid = stateid_};
  if (!reads || !writes || reader_ == writer_) {
    open.parts = {{share_access_, writes ? writer_ : reader_}};
  } else {
    open.parts = {{nfs4::kShareAccessRead, reader_}, {nfs4::kShareAccessWrite, writer_}};
  }
  open.with_write_delegation =
      delegation_.writes() || (delegation_.to_write_by() && (is_needed || locks_.are_here()));
  return open;
}

void Inode::reclaimed(const nfs4::Stateid& stateid) {
  const std::lock_guard lock(mutex_);
  stateid_ = stateid;
  broken_ = false;
}

void Inode::reclaim_failed() {
  const std::lock_guard lock(mutex_);
  broken_ = true;
}

}  // namespace pnfsrdma::fuse_client

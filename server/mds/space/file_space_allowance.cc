// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "server/mds/meta/quota_charge.h"
#include "server/mds/meta/read_then.h"
#include "server/mds/space/file_space.h"

// What is ahead of files, for whoever may have no more by his quota.
namespace pnfsrdma::mds {

struct FileSpace::Allowing {
  Allowance wanted;
  bool trimmed = false;  // the file itself
  // Who lacks it, and how many files that count for him are still to be asked for.
  std::optional<QuotaId> owner;
  size_t files_left = 0;
};

// The file itself first, as far as nobody reaches what is ahead of it; then what is ahead of the files that count for
// whoever may have no more, and nobody else's, of all of them once. While some is on its way back, he is told to come
// again.
void FileSpace::make_allowance(Allowance wanted) {
  const bool keeps_own = wanted.keeps_own;
  allow(std::make_shared<Allowing>(Allowing{.wanted = std::move(wanted), .trimmed = keeps_own}));
}

void FileSpace::allow(const AllowingPointer& work) {
  read_then(
      store_, lifetime_.token(), [work] { return work->wanted.who_lacks(); },
      [this, work](const Outcome<std::optional<QuotaId>>& lacking) {
        if (!lacking) return work->wanted.done(lacking.error());
        if (!*lacking) return work->wanted.done(nfs4::Status::kOk);
        if (clock_.now() >= work->wanted.until) return work->wanted.done(nfs4::Status::kDelay);
        take_back_for(work, **lacking);
      });
}

void FileSpace::take_back_for(const AllowingPointer& work, const QuotaId& owner) {
  const auto again = lifetime_.guard([this, work] { allow(work); });
  if (ahead_.contains(work->wanted.inode) && !std::exchange(work->trimmed, true)) {
    return trim(work->wanted.inode, [again](nfs4::Status) { again(); });
  }
  if (work->owner != owner) {
    work->owner = owner;
    work->files_left = ahead_.count(owner, work->wanted.inode);
  }
  if (work->files_left == 0) {
    const bool soon = names_.quotas().departs(owner, clock_.wall_now());
    return work->wanted.done(soon ? nfs4::Status::kDelay : nfs4::Status::kDQuot);
  }
  work->files_left -= std::min(work->files_left, AheadFiles::kAskedAtOnce);
  take_back_(work->wanted.inode, owner, again);
}

// Only reads. Of those that the file counts for.
Outcome<std::optional<QuotaId>> FileSpace::who_lacks(InodeId inode, uint64_t bytes) {
  TRY_ASSIGN(const InodePointer present, names_.get(inode));
  const auto allowed = names_.quotas().space_left(*present, clock_.wall_now());
  if (!allowed) return std::unexpected(status_of(allowed.error()));
  return allowed->bytes < bytes ? allowed->of : std::nullopt;
}

void FileSpace::count_ahead(const Inode& inode) {
  if (ahead_.contains(inode.id)) ahead_.enter(inode.id, false, names_.quotas().counted_owners(inode));
}

struct FileSpace::OwnerChange {
  Inode before;
  Inode after;
};

// Only reads. As it is when it has been cut.
Outcome<FileSpace::OwnerChange> FileSpace::owner_change(InodeId inode, const InodeUpdate& owners) {
  TRY_ASSIGN(const InodePointer present, names_.get(inode));
  Inode before = *present;
  if (owners.size) before.space_used = std::min(before.space_used, kept_end(*owners.size));
  Inode after = before;
  after.uid = owners.uid.value_or(before.uid);
  after.gid = owners.gid.value_or(before.gid);
  return OwnerChange{.before = std::move(before), .after = std::move(after)};
}

Outcome<> FileSpace::check_owners(InodeId inode, const InodeUpdate& owners) {
  TRY_ASSIGN(const OwnerChange change, owner_change(inode, owners));
  QuotaCharge charge(names_.quotas());
  charge.add(&change.before, &change.after);
  Batch never_committed;
  const auto put = charge.put(never_committed, clock_.wall_now());
  return put ? Outcome<>() : std::unexpected(status_of(put.error()));
}

void FileSpace::make_owners_allowance(InodeId inode, const InodeUpdate& owners, Done done) {
  const auto who_lacks = [this, inode, owners]() -> Outcome<std::optional<QuotaId>> {
    TRY_ASSIGN(const OwnerChange change, owner_change(inode, owners));
    const Quotas& quotas = names_.quotas();
    const Quotas::Owners had = quotas.owners_of(change.before);
    Quotas::Owners get;
    for (const QuotaId& owner : quotas.owners_of(change.after)) {
      if (!had.contains(owner)) get.add(owner);
    }
    const auto allowed = names_.quotas().space_left(get, clock_.wall_now());
    if (!allowed) return std::unexpected(status_of(allowed.error()));
    return allowed->bytes < change.after.space_used ? allowed->of : std::nullopt;
  };
  // Then an inode may still be too much.
  const auto checked = [this, inode, owners, done = std::move(done)](nfs4::Status status) {
    if (status != nfs4::Status::kOk) return done(status);
    read_then(
        store_, lifetime_.token(), [this, inode, owners] { return check_owners(inode, owners); },
        [done](const Outcome<>& fits) { done(fits ? nfs4::Status::kOk : fits.error()); });
  };
  make_allowance(
      {.inode = inode, .until = clock_.now() + kRoomPatience, .who_lacks = who_lacks, .done = checked});
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/ahead_files.h"

#include <algorithm>
#include <utility>

#include "server/mds/meta/records.h"
#include "shared/base/bytes.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

std::string ahead_record_key(InodeId inode) {
  std::byte key[sizeof(inode)];
  store_big_endian(key, inode);
  return std::string(as_text(key));
}

}  // namespace

AheadFiles::AheadFiles(KeyValueStore& store) {
  const auto scanned =
      Records(store).scan(RecordKind::kAhead, [this](std::string_view key, std::string_view) {
        if (key.size() == sizeof(InodeId)) enter(load_big_endian<InodeId>(as_bytes(key).data()), true);
        return true;
      });
  if (!scanned) log_error("layouts", "ahead-records-unreadable error=\"{}\"", scanned.error().to_string());
}

std::vector<InodeId> AheadFiles::page(InodeId from, size_t most) const {
  std::vector<InodeId> inodes;
  for (auto at = files_.lower_bound(from); at != files_.end() && inodes.size() < most; ++at)
    inodes.push_back(at->first);
  return inodes;
}

void AheadFiles::put_on_record(Batch& batch, InodeId inode) const {
  const auto found = files_.find(inode);
  if (found != files_.end() && found->second.on_record) return;
  Records::put(batch, RecordKind::kAhead, ahead_record_key(inode), "");
}

void AheadFiles::take_off_record(Batch& batch, InodeId inode) const {
  const auto found = files_.find(inode);
  if (found == files_.end() || !found->second.on_record) return;
  Records::erase(batch, RecordKind::kAhead, ahead_record_key(inode));
}

void AheadFiles::enter(InodeId inode, bool on_record, const std::vector<QuotaId>& owners) {
  const auto [found, is_new] = files_.try_emplace(inode);
  File& file = found->second;
  file.on_record = file.on_record || on_record;
  if (file.owners != owners) {
    disown(inode, file);
    file.owners = owners;
    for (const QuotaId& owner : owners) by_owner_[owner].files.insert(inode);
  }
  if (is_new) asked(inode);
}

void AheadFiles::disown(InodeId inode, const File& file) {
  for (const QuotaId& owner : file.owners) {
    const auto found = by_owner_.find(owner);
    found->second.files.erase(inode);
    if (found->second.files.empty()) by_owner_.erase(found);
  }
}

void AheadFiles::leave(InodeId inode) {
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  disown(inode, found->second);
  line_.erase(found->second.turn);
  files_.erase(found);
}

std::vector<InodeId> AheadFiles::ask(InodeId except) {
  std::vector<InodeId> inodes;
  for (auto at = line_.begin(); at != line_.end() && inodes.size() < kAskedAtOnce;) {
    if (at->second == except) {
      ++at;
      continue;
    }
    inodes.push_back(at->second);
    files_.at(at->second).turn = 0;
    at = line_.erase(at);
  }
  return inodes;
}

std::vector<InodeId> AheadFiles::ask(InodeId except, const QuotaId& owner) {
  std::vector<InodeId> inodes;
  const auto all = by_owner_.find(owner);
  if (all == by_owner_.end()) return inodes;
  auto& [owned, next] = all->second;
  auto at = owned.lower_bound(next);
  for (size_t left = std::min(owned.size(), kLookedAtOnce); left > 0 && inodes.size() < kAskedAtOnce;
       --left) {
    if (at == owned.end()) at = owned.begin();
    const InodeId inode = *at++;
    next = inode + 1;
    File& file = files_.at(inode);
    if (inode == except || file.turn == 0) continue;
    inodes.push_back(inode);
    line_.erase(std::exchange(file.turn, 0));
  }
  return inodes;
}

size_t AheadFiles::count(const QuotaId& owner, InodeId except) const {
  const auto all = by_owner_.find(owner);
  return all == by_owner_.end() ? 0 : all->second.files.size() - all->second.files.count(except);
}

void AheadFiles::asked(InodeId inode) {
  const auto found = files_.find(inode);
  if (found == files_.end() || found->second.turn != 0) return;
  found->second.turn = next_turn_++;
  line_.emplace(found->second.turn, inode);
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/space/ahead_files.h"

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

std::vector<InodeId> AheadFiles::all() const {
  std::vector<InodeId> inodes;
  for (const auto& [inode, file] : files_) inodes.push_back(inode);
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

void AheadFiles::enter(InodeId inode, bool on_record) {
  const auto [found, is_new] = files_.try_emplace(inode);
  found->second.on_record = found->second.on_record || on_record;
  if (is_new) asked(inode);
}

void AheadFiles::leave(InodeId inode) {
  const auto found = files_.find(inode);
  if (found == files_.end()) return;
  line_.erase(found->second.turn);
  files_.erase(found);
}

std::vector<InodeId> AheadFiles::ask(InodeId except, const Filter& which) {
  std::vector<InodeId> inodes;
  size_t looked = 0;
  for (auto at = line_.begin(); at != line_.end() && inodes.size() < kAskedAtOnce;) {
    if (which && ++looked > kFilteredAtOnce) break;
    if (at->second == except || (which && !which(at->second))) {
      ++at;
      continue;
    }
    inodes.push_back(at->second);
    files_.at(at->second).turn = 0;
    at = line_.erase(at);
  }
  return inodes;
}

void AheadFiles::asked(InodeId inode) {
  const auto found = files_.find(inode);
  if (found == files_.end() || found->second.turn != 0) return;
  found->second.turn = next_turn_++;
  line_.emplace(found->second.turn, inode);
}

}  // namespace pnfsrdma::mds

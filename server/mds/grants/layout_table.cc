// SPDX-License-Identifier: Apache-2.0
#include "server/mds/grants/layout_table.h"

#include <algorithm>
#include <iterator>

namespace pnfsrdma::mds {

HeldLayout* LayoutTable::find(uint64_t inode, uint64_t client) {
  return const_cast<HeldLayout*>(std::as_const(*this).find(inode, client));
}

const HeldLayout* LayoutTable::find(uint64_t inode, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return nullptr;
  const auto layout = file->second.layouts.find(client);
  return layout == file->second.layouts.end() ? nullptr : &layout->second;
}

const HeldLayout* LayoutTable::find(const std::array<std::byte, 12>& other) const {
  const auto found = by_stateid_.find(other);
  return found == by_stateid_.end() ? nullptr : found->second;
}

LayoutTable::File& LayoutTable::file_of(uint64_t inode) {
  const auto [at, fresh] = files_.try_emplace(inode);
  if (fresh && snapshot_of(inode) != 0) in_snapshots_.insert(inode);
  return at->second;
}

HeldLayout& LayoutTable::add(uint64_t inode, uint64_t client, const std::array<std::byte, 12>& other) {
  by_client_[client].insert(inode);
  const auto [at, fresh] = file_of(inode).layouts.try_emplace(client, client, inode, other);
  if (fresh) {
    by_stateid_[other] = &at->second;
    at->second.set_version(++versions_);
  }
  return at->second;
}

void LayoutTable::erase(uint64_t inode, uint64_t client) {
  const auto file = files_.find(inode);
  if (file == files_.end()) return;
  const auto layout = file->second.layouts.find(client);
  if (layout == file->second.layouts.end()) return;
  const size_t grants = layout->second.grants().size();
  leave_written(inode, file->second, layout->second.grants());
  by_stateid_.erase(layout->second.stateid().other);
  file->second.layouts.erase(layout);
  drop_if_empty(inode);
  grants_ -= grants;
  const auto holder = by_client_.find(client);
  holder->second.erase(inode);
  if (holder->second.empty()) by_client_.erase(holder);
}

void LayoutTable::count(const HeldLayout& layout, size_t before) {
  grants_ += layout.grants().size() - before;  // which may wrap: it has become less
}

void LayoutTable::add_grant(HeldLayout& layout, HeldGrant grant) {
  const size_t before = layout.grants().size();
  if (grant.writable) {
    files_.at(layout.inode()).written.add(grant.file);
    written_.insert(layout.inode());
  }
  layout.add_grant(std::move(grant));
  count(layout, before);
}

// What has left a layout is dying, and only then dead.
void LayoutTable::leave_written(uint64_t inode, File& file, std::span<const HeldGrant> grants) {
  for (const HeldGrant& grant : grants) {
    if (grant.writable) file.written.remove(grant.file);
  }
  if (file.written.empty()) written_.erase(inode);
}

std::vector<HeldGrant> LayoutTable::give_back(HeldLayout& layout, const ByteRange& range, IoMode mode) {
  const size_t before = layout.grants().size();
  std::vector<HeldGrant> dead = layout.give_back(range, mode);
  count(layout, before);
  return dead;
}

std::vector<HeldGrant> LayoutTable::take_back(HeldLayout& layout, std::span<const HeldGrant> grants) {
  const size_t before = layout.grants().size();
  std::vector<HeldGrant> dead = layout.take_back(grants);
  count(layout, before);
  return dead;
}

const LayoutStateid& LayoutTable::advance(HeldLayout& layout) {
  layout.set_version(++versions_);
  return layout.advance();
}

void LayoutTable::drop_if_empty(uint64_t inode) {
  const auto file = files_.find(inode);
  if (file == files_.end() || !file->second.layouts.empty() || !file->second.dying.empty()) return;
  files_.erase(file);
  in_snapshots_.erase(inode);
}

std::vector<HeldLayout*> LayoutTable::of_file(uint64_t inode) {
  std::vector<HeldLayout*> found;
  const auto file = files_.find(inode);
  if (file == files_.end()) return found;
  for (auto& [client, layout] : file->second.layouts) found.push_back(&layout);
  return found;
}

std::vector<uint64_t> LayoutTable::clients_of_file(uint64_t inode) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return {};
  std::vector<uint64_t> found;
  for (const auto& [client, layout] : file->second.layouts) found.push_back(client);
  const auto holders = static_cast<ptrdiff_t>(found.size());
  for (const auto& [place, piece] : file->second.dying) {
    if (found.empty() || found.back() != place.first) found.push_back(place.first);
  }
  // Each of the two is in order.
  std::inplace_merge(found.begin(), found.begin() + holders, found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<uint64_t> LayoutTable::files_of_client(uint64_t client, size_t most, uint64_t after) const {
  const auto held = by_client_.find(client);
  if (held == by_client_.end()) return {};
  const std::set<uint64_t>& files = held->second;
  std::vector<uint64_t> found;
  for (auto at = files.upper_bound(after); at != files.end() && found.size() < most; ++at)
    found.push_back(*at);
  return found;
}

size_t LayoutTable::layouts_of_client(uint64_t client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? 0 : found->second.size();
}

std::vector<uint64_t> LayoutTable::clients() const {
  std::vector<uint64_t> found;
  for (const auto& [client, holder] : by_client_) found.push_back(client);
  return found;
}

std::vector<DyingPointer> LayoutTable::begin_death(uint64_t inode, uint64_t client,
                                                   std::vector<HeldGrant> grants, const BrickOf& brick_of) {
  std::vector<DyingPointer> pieces;
  std::map<BrickNumber, std::shared_ptr<DyingGrants>> growing;
  for (HeldGrant& grant : grants) {
    const BrickNumber brick = brick_of(grant.logical);
    std::shared_ptr<DyingGrants>& piece = growing[brick];
    if (!piece || piece->grants.size() == kGrantsPerPiece) {
      piece = std::make_shared<DyingGrants>(DyingGrants{
          .number = next_dying_++, .inode = inode, .brick = brick, .client = client, .hull = grant.file});
      file_of(inode).dying.emplace(std::pair(client, piece->number), piece);
      dying_.emplace(piece->number, piece);
      pieces.push_back(piece);
    }
    piece->hull = {std::min(piece->hull.begin, grant.file.begin), std::max(piece->hull.end, grant.file.end)};
    if (grant.writable) piece->writable_end = std::max(piece->writable_end, grant.file.end);
    piece->grants.push_back(std::move(grant));
  }
  return pieces;
}

void LayoutTable::end_death(const DyingGrants& piece) {
  const auto file = files_.find(piece.inode);
  if (file == files_.end()) return;
  const auto key = std::pair(piece.client, piece.number);
  if (file->second.dying.erase(key) == 0) return;
  leave_written(piece.inode, file->second, piece.grants);
  dying_.erase(piece.number);
  drop_if_empty(piece.inode);
}

bool LayoutTable::any_piece(const File& file, uint64_t client,
                            const std::function<bool(const DyingGrants&)>& is_so) {
  const auto end = client == 0 ? file.dying.end() : file.dying.upper_bound({client, UINT64_MAX});
  return std::any_of(file.dying.lower_bound({client, 0}), end,
                     [&](const auto& each) { return is_so(*each.second); });
}

bool LayoutTable::any_dying(uint64_t inode, uint64_t client,
                            const std::function<bool(const DyingGrants&)>& is_so) const {
  const auto file = files_.find(inode);
  return file != files_.end() && any_piece(file->second, client, is_so);
}

std::vector<DyingPointer> LayoutTable::dying(uint64_t after, size_t most) const {
  std::vector<DyingPointer> found;
  for (auto at = dying_.upper_bound(after); at != dying_.end() && found.size() < most; ++at)
    found.push_back(at->second);
  return found;
}

bool LayoutTable::reachable(uint64_t inode, const ByteRange& range, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  const auto overlaps = [&](const HeldGrant& grant) { return grant.file.overlaps(range); };
  const auto reaches = [&](const DyingGrants& piece) {
    return piece.hull.overlaps(range) && std::ranges::any_of(piece.grants, overlaps);
  };
  if (any_piece(file->second, client, reaches)) return true;
  return any_layout(file->second, client, [&](const HeldLayout& layout) {
    return layout.holds(layout.rounded_out(range), IoMode::kAny);
  });
}

// Of one client (0: everybody): found, not looked for.
bool LayoutTable::any_layout(const File& file, uint64_t client,
                             const std::function<bool(const HeldLayout&)>& is_so) {
  if (client == 0)
    return std::ranges::any_of(file.layouts, [&](const auto& each) { return is_so(each.second); });
  const auto found = file.layouts.find(client);
  return found != file.layouts.end() && is_so(found->second);
}

bool LayoutTable::writable_past(uint64_t inode, uint64_t offset, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  if (client == 0) return file->second.written.end() > offset;
  const auto reaches = [&](const DyingGrants& piece) { return piece.writable_end > offset; };
  if (any_piece(file->second, client, reaches)) return true;
  const HeldLayout* const layout = find(inode, client);
  return layout != nullptr && layout->writes_past(offset);
}

bool LayoutTable::may_be_written(uint64_t inode, const ByteRange& range) const {
  const auto file = files_.find(inode);
  return file != files_.end() && file->second.written.covers(range);
}

uint64_t LayoutTable::end_holder(uint64_t inode, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return 0;
  for (const auto& [holder, layout] : file->second.layouts) {
    if (holder != client && layout.end_token() != 0) return holder;
  }
  return 0;
}

RangeSet LayoutTable::out_of_reach(uint64_t inode, RangeSet bytes) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return bytes;
  file->second.written.take_from(bytes);
  return bytes;
}

std::vector<uint64_t> LayoutTable::written_files(uint64_t from, size_t most) const {
  std::vector<uint64_t> found;
  for (auto at = written_.lower_bound(from); at != written_.end() && found.size() < most; ++at)
    found.push_back(*at);
  return found;
}

std::vector<uint64_t> LayoutTable::files_of_snapshot(SnapshotNumber snapshot, size_t most) const {
  std::vector<uint64_t> found;
  for (auto at = in_snapshots_.lower_bound(inode_in(snapshot, 0)); at != in_snapshots_.end(); ++at) {
    if (found.size() == most || snapshot_of(*at) != snapshot) break;
    found.push_back(*at);
  }
  return found;
}

}  // namespace pnfsrdma::mds

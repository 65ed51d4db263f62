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

HeldLayout& LayoutTable::add(uint64_t inode, uint64_t client, const std::array<std::byte, 12>& other) {
  by_client_[client].files.insert(inode);
  const auto [at, fresh] = files_[inode].layouts.try_emplace(client, client, inode, other);
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
  by_stateid_.erase(layout->second.stateid().other);
  file->second.layouts.erase(layout);
  drop_if_empty(inode);
  grants_ -= grants;
  const auto holder = by_client_.find(client);
  holder->second.grants -= grants;
  holder->second.files.erase(inode);
  if (holder->second.files.empty()) by_client_.erase(holder);
}

void LayoutTable::count(const HeldLayout& layout, size_t before) {
  const size_t growth = layout.grants().size() - before;  // may wrap: it has become less
  by_client_.at(layout.client()).grants += growth;
  grants_ += growth;
}

void LayoutTable::add_grant(HeldLayout& layout, HeldGrant grant) {
  const size_t before = layout.grants().size();
  layout.add_grant(std::move(grant));
  count(layout, before);
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
  if (file != files_.end() && file->second.layouts.empty() && file->second.dying.empty()) files_.erase(file);
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
  std::set<uint64_t> found;
  for (const auto& [client, layout] : file->second.layouts) found.insert(client);
  for (const auto& [number, piece] : file->second.dying) found.insert(piece->client);
  return {found.begin(), found.end()};
}

std::vector<uint64_t> LayoutTable::files_of_client(uint64_t client, size_t most, uint64_t after) const {
  const auto held = by_client_.find(client);
  if (held == by_client_.end()) return {};
  const std::set<uint64_t>& files = held->second.files;
  std::vector<uint64_t> found;
  for (auto at = files.upper_bound(after); at != files.end() && found.size() < most; ++at)
    found.push_back(*at);
  return found;
}

size_t LayoutTable::layouts_of_client(uint64_t client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? 0 : found->second.files.size();
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
      piece = std::make_shared<DyingGrants>(
          DyingGrants{.number = next_dying_++, .brick = brick, .client = client, .hull = grant.file});
      files_[inode].dying.emplace(piece->number, piece);
      pieces.push_back(piece);
    }
    piece->hull = {std::min(piece->hull.begin, grant.file.begin), std::max(piece->hull.end, grant.file.end)};
    if (grant.writable) piece->writable_end = std::max(piece->writable_end, grant.file.end);
    piece->grants.push_back(std::move(grant));
  }
  if (!pieces.empty()) with_dying_.insert(inode);
  return pieces;
}

void LayoutTable::end_death(uint64_t inode, const DyingGrants& piece) {
  const auto file = files_.find(inode);
  if (file == files_.end()) return;
  file->second.dying.erase(piece.number);
  if (file->second.dying.empty()) with_dying_.erase(inode);
  drop_if_empty(inode);
}

bool LayoutTable::any_dying(uint64_t inode, uint64_t client,
                            const std::function<bool(const HeldGrant&)>& is_so) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  return std::ranges::any_of(file->second.dying, [&](const auto& each) {
    return each.second->client == client && std::ranges::any_of(each.second->grants, is_so);
  });
}

void LayoutTable::for_each_dying(uint64_t inode,
                                 const std::function<void(uint64_t client, const HeldGrant&)>& visit) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return;
  for (const auto& [number, piece] : file->second.dying) {
    for (const HeldGrant& grant : piece->grants) visit(piece->client, grant);
  }
}

bool LayoutTable::reachable(uint64_t inode, const ByteRange& range, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  for (const auto& [number, piece] : file->second.dying) {
    if ((client != 0 && piece->client != client) || !piece->hull.overlaps(range)) continue;
    const auto overlaps = [&](const HeldGrant& grant) { return grant.file.overlaps(range); };
    if (std::ranges::any_of(piece->grants, overlaps)) return true;
  }
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
  const auto is_dying = [&](const auto& each) {
    return (client == 0 || each.second->client == client) && each.second->writable_end > offset;
  };
  return std::ranges::any_of(file->second.dying, is_dying) ||
         any_layout(file->second, client,
                    [offset](const HeldLayout& layout) { return layout.writes_past(offset); });
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
  for (const auto& [number, piece] : file->second.dying) {
    if (piece->writable_end == 0 || !piece->hull.overlaps(bytes.hull())) continue;
    for (const HeldGrant& grant : piece->grants) {
      if (grant.writable) bytes.remove(grant.file);
    }
  }
  for (const auto& [holder, layout] : file->second.layouts) layout.take_writable_from(bytes);
  return bytes;
}

size_t LayoutTable::grants_of_client(uint64_t client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? 0 : found->second.grants;
}

std::vector<uint64_t> LayoutTable::files(const std::function<bool(uint64_t inode)>& is_so) const {
  std::vector<uint64_t> found;
  for (const auto& [inode, file] : files_) {
    if (is_so(inode)) found.push_back(inode);
  }
  return found;
}

}  // namespace pnfsrdma::mds

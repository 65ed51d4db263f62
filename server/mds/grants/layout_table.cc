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
  if (fresh) by_stateid_[other] = &at->second;
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
  for (const Dying& dying : file->second.dying) found.insert(dying.client);
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

void LayoutTable::begin_death(uint64_t inode, uint64_t client, const std::vector<HeldGrant>& grants) {
  if (grants.empty()) return;
  auto& dying = files_[inode].dying;
  with_dying_.insert(inode);
  for (const HeldGrant& grant : grants) dying.push_back({client, grant});
}

void LayoutTable::end_death(uint64_t inode, uint64_t client, const std::vector<HeldGrant>& grants) {
  const auto file = files_.find(inode);
  if (file == files_.end()) return;
  std::set<std::pair<uint64_t, uint64_t>> dead;
  for (const HeldGrant& grant : grants) dead.emplace(grant.logical, grant.grant);
  std::erase_if(file->second.dying, [&](const Dying& dying) {
    return dying.client == client && dead.contains({dying.grant.logical, dying.grant.grant});
  });
  if (file->second.dying.empty()) with_dying_.erase(inode);
  drop_if_empty(inode);
}

std::vector<HeldGrant> LayoutTable::dying(uint64_t inode, uint64_t client) const {
  std::vector<HeldGrant> found;
  const auto file = files_.find(inode);
  if (file == files_.end()) return found;
  for (const Dying& dying : file->second.dying) {
    if (dying.client == client) found.push_back(dying.grant);
  }
  return found;
}

void LayoutTable::for_each_dying(uint64_t inode,
                                 const std::function<void(uint64_t client, const HeldGrant&)>& visit) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return;
  for (const Dying& dying : file->second.dying) visit(dying.client, dying.grant);
}

bool LayoutTable::reachable(uint64_t inode, const ByteRange& range, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  for (const Dying& dying : file->second.dying) {
    if ((client == 0 || dying.client == client) && dying.grant.file.overlaps(range)) return true;
  }
  for (const auto& [holder, layout] : file->second.layouts) {
    if (client != 0 && holder != client) continue;
    if (layout.holds(layout.rounded_out(range), IoMode::kAny)) return true;
  }
  return false;
}

bool LayoutTable::writable_past(uint64_t inode, uint64_t offset, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return false;
  const auto asked = [client](uint64_t holder) { return client == 0 || holder == client; };
  const auto& [layouts, dying] = file->second;
  return std::any_of(dying.begin(), dying.end(),
                     [&](const Dying& end) {
                       return asked(end.client) && end.grant.writable && end.grant.file.end > offset;
                     }) ||
         std::any_of(layouts.begin(), layouts.end(), [&](const auto& layout) {
           return asked(layout.first) && layout.second.writes_past(offset);
         });
}

uint64_t LayoutTable::end_holder(uint64_t inode, uint64_t client) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return 0;
  for (const auto& [holder, layout] : file->second.layouts) {
    if (holder != client && layout.end_token() != 0) return holder;
  }
  return 0;
}

void LayoutTable::drop_end(uint64_t inode, uint64_t except) {
  const auto file = files_.find(inode);
  if (file == files_.end()) return;
  for (auto& [holder, layout] : file->second.layouts) {
    if (holder != except) layout.set_end_token(0);
  }
}

RangeSet LayoutTable::out_of_reach(uint64_t inode, RangeSet bytes) const {
  const auto file = files_.find(inode);
  if (file == files_.end()) return bytes;
  for (const Dying& dying : file->second.dying) {
    if (dying.grant.writable) bytes.remove(dying.grant.file);
  }
  for (const auto& [holder, layout] : file->second.layouts) layout.take_writable_from(bytes);
  return bytes;
}

size_t LayoutTable::grants_of_client(uint64_t client) const {
  const auto found = by_client_.find(client);
  return found == by_client_.end() ? 0 : found->second.grants;
}

}  // namespace pnfsrdma::mds

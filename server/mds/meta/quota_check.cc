// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/quota_check.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

namespace pnfsrdma::mds {
namespace {

std::string called(const QuotaId& id) {
  return fmt::format("{}{} {}", id.kind == QuotaKind::kTree ? "quota " : "", to_string(id.kind), id.number);
}

}  // namespace

Result<QuotaCheck> QuotaCheck::open(KeyValueStore& store) {
  TRY_ASSIGN(Quotas quotas, Quotas::open(store));
  QuotaCheck check(std::move(quotas));
  for (const auto& [number, tree] : check.quotas_.trees().all()) check.roots_[number] = false;
  return check;
}

void QuotaCheck::add(const Inode& inode) {
  if (quotas_.trees().is_root(inode) && inode.is_directory()) roots_[inode.tree] = true;
  if (inode.id >= quotas_.counted_to()) return;
  for (const QuotaId& id : quotas_.owners_of(inode)) {
    Sum& sum = sums_[id];
    sum.space += inode.space_used;
    ++sum.inodes;
  }
}

bool QuotaCheck::is_placed(const Named& name) const {
  const QuotaTrees& trees = quotas_.trees();
  const QuotaTree* const around = trees.find(name.directory_tree);
  if (!name.is_directory) return around == nullptr || !around->complete || name.tree.value != 0;
  const QuotaTree* const tree = trees.find(name.tree);
  const bool is_root = tree != nullptr && tree->root == name.inode;
  if (around == nullptr) return tree == nullptr || is_root;
  return tree == around || (tree == nullptr && !around->complete);
}

Result<> QuotaCheck::compare(const std::function<void(std::string)>& problem) {
  constexpr size_t kPage = 4096;
  for (const auto& [number, met] : roots_) {
    if (!met) problem(fmt::format("quota tree {} has no directory", number.value));
  }
  QuotaId from;
  for (bool more = true; more;) {
    TRY_ASSIGN(const std::vector<Quotas::Entry> page, quotas_.page(from, kPage));
    for (const auto& [id, usage] : page) {
      const Sum sum = sums_[id];
      if (usage.space.used != sum.space || usage.inodes.used != sum.inodes) {
        problem(fmt::format("{} has {} bytes and {} inodes, on record are {} and {}", called(id), sum.space,
                            sum.inodes, usage.space.used, usage.inodes.used));
      }
      sums_.erase(id);
      from = behind(id);
    }
    more = !page.empty();
  }
  for (const auto& [id, sum] : sums_)
    problem(fmt::format("{} has {} bytes and {} inodes, which is not on record", called(id), sum.space,
                        sum.inodes));
  return {};
}

}  // namespace pnfsrdma::mds

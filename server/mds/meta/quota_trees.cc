// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/quota_trees.h"

#include <algorithm>
#include <cerrno>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/quota_charge.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kNextTreeKey = "next-tree";

}  // namespace

Result<QuotaTrees> QuotaTrees::open(KeyValueStore& store) {
  QuotaTrees trees(store);
  TRY_ASSIGN(const std::optional<std::string> next, store.get(meta_key(kNextTreeKey)));
  if (!next) return trees;
  TRY_ASSIGN(const StoredNumber number, read_value<StoredNumber>(*next, "the number of the next tree"));
  trees.next_ = number.number;
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const TreeNumber place{number_of_key(kTreeTag, key).value_or(0)};
    auto stored = read_value<StoredTree>(value, "a quota tree");
    if (stored && (place.value == 0 || place.value >= trees.next_))
      stored = fail(EUCLEAN, "the metadata store has an impossible quota tree");
    if (!stored) {
      outcome = std::unexpected(stored.error());
      return false;
    }
    trees.all_[place] = {place, stored->root, std::move(stored->path), stored->complete};
    return true;
  };
  TRY(store.scan(tag_prefix(kTreeTag), {}, visit));
  TRY(outcome);
  trees.count_incomplete();
  return trees;
}

const QuotaTree* QuotaTrees::find(TreeNumber number) const {
  const auto found = all_.find(number);
  return found == all_.end() ? nullptr : &found->second;
}

const QuotaTree* QuotaTrees::of_root(InodeId directory) const {
  const auto found =
      std::ranges::find_if(all_, [directory](const auto& one) { return one.second.root == directory; });
  return found == all_.end() ? nullptr : &found->second;
}

Result<QuotaTree> QuotaTrees::add(Batch& batch, InodeId root, const std::string& path) const {
  if (all_.size() >= kTreesMax) return fail(EMFILE, "there are as many quota trees as there may be");
  const QuotaTree tree{.number = {next_}, .root = root, .path = path, .complete = false};
  put_value(batch, meta_key(kNextTreeKey), StoredNumber{next_ + 1});
  put(batch, tree);
  return tree;
}

void QuotaTrees::put(Batch& batch, const QuotaTree& tree) const {
  put_value(batch, number_key(kTreeTag, tree.number.value),
            StoredTree{tree.root, {tree.path}, tree.complete});
}

void QuotaTrees::erase(Batch& batch, TreeNumber number) const {
  const QuotaId id{QuotaKind::kTree, number.value};
  batch.erase(number_key(kTreeTag, number.value));
  batch.erase(quota_key(kQuotaTag, id));
  batch.erase(quota_key(kQuotaLimitsTag, id));
}

void QuotaTrees::enter(const QuotaTree& tree) {
  next_ = std::max(next_, tree.number.value + 1);
  all_[tree.number] = tree;
  count_incomplete();
}

void QuotaTrees::leave(TreeNumber number) {
  all_.erase(number);
  count_incomplete();
}

void QuotaTrees::count_incomplete() {
  incomplete_ =
      static_cast<size_t>(std::ranges::count_if(all_, [](const auto& one) { return !one.second.complete; }));
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/quotas.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/quota_charge.h"
#include "server/mds/meta/values.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kCountedKey = "quota-counted";
constexpr std::string_view kGraceKey = "quota-grace";
constexpr size_t kUsageCached = 16'384;

std::optional<QuotaId> id_of(char tag, std::string_view key) {
  const auto numbers = numbers_of_key(tag, key);
  if (!numbers || numbers->first < static_cast<uint64_t>(QuotaKind::kUser) ||
      numbers->first > static_cast<uint64_t>(QuotaKind::kTree))
    return std::nullopt;
  return QuotaId{static_cast<QuotaKind>(numbers->first), numbers->second};
}

}  // namespace

void put_quota(Batch& batch, const QuotaId& id, const QuotaUsage& usage) {
  if (usage.empty()) {
    batch.erase(quota_key(kQuotaTag, id));
  } else {
    put_value(batch, quota_key(kQuotaTag, id), StoredQuota{usage});
  }
}

Quotas::Quotas(KeyValueStore& store, QuotaTrees trees)
    : store_(&store), trees_(std::move(trees)), usage_(kUsageCached) {}

Result<Quotas> Quotas::open(KeyValueStore& store) {
  TRY_ASSIGN(QuotaTrees trees, QuotaTrees::open(store));
  Quotas quotas(store, std::move(trees));
  TRY_ASSIGN(const std::optional<std::string> grace, store.get(meta_key(kGraceKey)));
  if (grace) {
    TRY_ASSIGN(quotas.grace_, read_value<QuotaGrace>(*grace, "the grace periods of quotas"));
  }
  TRY_ASSIGN(const std::optional<std::string> counted, store.get(meta_key(kCountedKey)));
  if (!counted) return quotas;
  TRY_ASSIGN(const StoredNumber number, read_value<StoredNumber>(*counted, "how far quotas are counted"));
  quotas.counted_to_ = number.number;
  TRY(quotas.read_limits());
  return quotas;
}

Result<> Quotas::read_limits() {
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto id = id_of(kQuotaLimitsTag, key);
    auto stored = read_value<StoredQuotaLimits>(value, "the limits of a quota");
    if (stored && !id) stored = fail(EUCLEAN, "the metadata store has limits of nobody");
    if (!stored) {
      outcome = std::unexpected(stored.error());
      return false;
    }
    limits_[*id] = stored->limits;
    return true;
  };
  TRY(store_->scan(tag_prefix(kQuotaLimitsTag), {}, visit));
  return outcome;
}

Result<> Quotas::begin() {
  if (on()) return {};
  Batch batch;
  raise_format_version(batch, kFormatQuotas);
  put_value(batch, meta_key(kCountedKey), StoredNumber{kRootInode});
  TRY(store_->commit(batch, CommitKind::kNamespace));
  counted_to_ = kRootInode;
  return {};
}

Result<> Quotas::set_limits(const QuotaId& id, const QuotaLimits& limits, const WallTime& now) {
  if (!limits.none() && !limits_.contains(id) && limits_.size() >= kLimitsMax)
    return fail(EMFILE, "there are limits for as many users, groups and trees as there may be");
  TRY_ASSIGN(const QuotaUsage present, usage(id));
  const auto seconds = static_cast<uint64_t>(now.seconds);
  const QuotaUsage changed{.space = dated(present.space, limits.space, seconds),
                           .inodes = dated(present.inodes, limits.inodes, seconds)};
  Batch batch;
  if (limits.none()) {
    batch.erase(quota_key(kQuotaLimitsTag, id));
  } else {
    put_value(batch, quota_key(kQuotaLimitsTag, id), StoredQuotaLimits{limits});
  }
  if (changed != present) put_quota(batch, id, changed);
  TRY(store_->commit(batch, CommitKind::kNamespace));
  usage_.put(id, changed);
  if (limits.none()) {
    limits_.erase(id);
  } else {
    limits_[id] = limits;
  }
  return {};
}

Result<> Quotas::set_grace(const QuotaGrace& grace) {
  if (grace.space > kGraceMax || grace.inodes > kGraceMax)
    return fail(EINVAL, "a grace period is ten years at most");
  Batch batch;
  put_value(batch, meta_key(kGraceKey), grace);
  TRY(store_->commit(batch, CommitKind::kNamespace));
  grace_ = grace;
  return {};
}

void Quotas::forget_tree(TreeNumber number) {
  const QuotaId id{QuotaKind::kTree, number.value};
  trees_.leave(number);
  limits_.erase(id);
  usage_.erase(id);
  departures_.erase(id);
}

QuotaLimits Quotas::limits_of(const QuotaId& id) const {
  const auto found = limits_.find(id);
  return found == limits_.end() ? QuotaLimits{} : found->second;
}

bool Quotas::holds(const QuotaId& id) const {
  if (!counted()) return false;
  if (id.kind != QuotaKind::kTree) return true;
  const QuotaTree* const tree = trees_.find({id.number});
  return tree != nullptr && tree->complete;
}

Result<QuotaUsage> Quotas::usage(const QuotaId& id) {
  if (const QuotaUsage* const cached = usage_.find(id)) return *cached;
  QuotaUsage usage;
  TRY_ASSIGN(const std::optional<std::string> bytes, store_->get(quota_key(kQuotaTag, id)));
  if (bytes) {
    TRY_ASSIGN(const StoredQuota stored, read_value<StoredQuota>(*bytes, "what a quota counts"));
    usage = stored.usage;
  }
  usage_.put(id, usage);
  return usage;
}

Result<std::vector<Quotas::Entry>> Quotas::page(const QuotaId& from, size_t most) {
  std::vector<Entry> entries;
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto id = id_of(kQuotaTag, key);
    auto stored = read_value<StoredQuota>(value, "what a quota counts");
    if (stored && !id) stored = fail(EUCLEAN, "the metadata store counts for nobody");
    if (!stored) {
      outcome = std::unexpected(stored.error());
      return false;
    }
    entries.push_back({*id, stored->usage});
    return entries.size() < most;
  };
  TRY(store_->scan(tag_prefix(kQuotaTag), quota_key(kQuotaTag, from), visit));
  TRY(outcome);
  return entries;
}

Quotas::Owners Quotas::owners_of(const Inode& inode) const {
  Owners owners;
  owners.add({QuotaKind::kUser, inode.uid});
  owners.add({QuotaKind::kGroup, inode.gid});
  const TreeNumber tree = trees_.tree_of(inode);
  if (tree.value != 0) owners.add({QuotaKind::kTree, tree.value});
  return owners;
}

std::vector<QuotaId> Quotas::counted_owners(const Inode& inode) const {
  if (!on()) return {};
  const Owners owners = owners_of(inode);
  return {owners.begin(), owners.end()};
}

void Quotas::bring(const Inode& inode) {
  if (!on()) return;
  for (const QuotaId& id : owners_of(inode)) static_cast<void>(usage(id));
}

Result<Quotas::Allowance> Quotas::space_left(const Inode& inode, const WallTime& now) {
  Allowance least;
  const auto seconds = static_cast<uint64_t>(now.seconds);
  for (const QuotaId& id : owners_of(inode)) {
    const QuotaLimit limit = limits_of(id).space;
    if (limit.none() || !holds(id)) continue;
    TRY_ASSIGN(const QuotaUsage usage, this->usage(id));
    uint64_t left = UINT64_MAX;
    const auto up_to = [&, used = usage.space.used](uint64_t bytes) {
      left = std::min(left, bytes - std::min(bytes, used));
    };
    if (limit.hard != 0) up_to(limit.hard);
    // Above the soft limit nothing more is to be had once the time is up; below it, up to it.
    const bool late = limit.soft != 0 && (usage.space.over_since != 0 || grace_.space == 0) &&
                      seconds >= usage.space.over_since + grace_.space;
    if (late) up_to(limit.soft);
    if (left < least.bytes) least = {.bytes = left, .of = id};
  }
  return least;
}

bool Quotas::departs(const QuotaId& id, const WallTime& now) const {
  const auto found = departures_.find(id);
  if (found == departures_.end()) return false;
  // A clock that was set back is no reason to wait for it.
  const int64_t since = now.seconds - found->second.newest;
  return since >= 0 && since <= kDepartureSecondsMax;
}

void Quotas::depart(const Inode& inode, const WallTime& now) {
  for (const QuotaId& id : owners_of(inode)) {
    Departure& departure = departures_[id];
    ++departure.files;
    departure.newest = now.seconds;
  }
}

void Quotas::gone(const Inode& inode) {
  for (const QuotaId& id : owners_of(inode)) {
    const auto found = departures_.find(id);
    if (found != departures_.end() && --found->second.files == 0) departures_.erase(found);
  }
}

Result<std::optional<Quotas::Room>> Quotas::room(const Inode& inode, QuotaLimit QuotaLimits::* limit,
                                                 QuotaUse QuotaUsage::* use) {
  const QuotaId id{QuotaKind::kTree, trees_.tree_of(inode).value};
  if (!holds(id)) return std::nullopt;
  const QuotaLimits limits = limits_of(id);
  const QuotaLimit& one = limits.*limit;
  const uint64_t total = one.hard != 0 ? one.hard : one.soft;
  if (total == 0) return std::nullopt;
  TRY_ASSIGN(const QuotaUsage usage, this->usage(id));
  return Room{.total = total, .left = total - std::min(total, (usage.*use).used)};
}

Result<std::optional<Quotas::Room>> Quotas::tree_space(const Inode& inode) {
  return room(inode, &QuotaLimits::space, &QuotaUsage::space);
}

Result<std::optional<Quotas::Room>> Quotas::tree_inodes(const Inode& inode) {
  return room(inode, &QuotaLimits::inodes, &QuotaUsage::inodes);
}

Result<Quotas::Slice> Quotas::next_slice(size_t most) {
  Slice slice{.inodes = {}, .end = kAllCounted};
  const auto visit = [&](std::string_view, std::string_view value) {
    if (slice.inodes.size() == most) {
      slice.end = slice.inodes.back().id + 1;
      return false;
    }
    // One that cannot be read counts for nobody: there is a problem, as --check tells, but not this one.
    if (auto inode = read_value<Inode>(value, "an inode")) {
      slice.inodes.push_back(*std::move(inode));
    } else {
      log_error("quotas", "quota-inode-unreadable {}", inode.error().to_string());
    }
    return true;
  };
  TRY(store_->scan(tag_prefix(kInodeTag), number_key(kInodeTag, counted_to_), visit));
  // What is to be added to is read before there is any effect.
  for (const Inode& inode : slice.inodes) bring(inode);
  return slice;
}

Result<> Quotas::count(const Slice& slice, const WallTime& now) {
  QuotaCharge charge(*this);
  for (const Inode& inode : slice.inodes) charge.count(inode);
  Batch batch;
  TRY(charge.put(batch, now));
  put_value(batch, meta_key(kCountedKey), StoredNumber{slice.end});
  TRY(store_->commit(batch, CommitKind::kState));
  charge.keep(now);
  counted_to_ = slice.end;
  return {};
}

}  // namespace pnfsrdma::mds

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
constexpr std::string_view kUserDefaultKey = "quota-default-user";
constexpr std::string_view kGroupDefaultKey = "quota-default-group";
constexpr size_t kUsageCached = 16'384;

std::optional<QuotaId> id_of(char tag, std::string_view key) {
  const auto numbers = numbers_of_key(tag, key);
  if (!numbers || numbers->first < static_cast<uint64_t>(QuotaKind::kUser) ||
      numbers->first > static_cast<uint64_t>(QuotaKind::kTree))
    return std::nullopt;
  return QuotaId{static_cast<QuotaKind>(numbers->first), numbers->second};
}

// "user 1000"
std::string name_of(const QuotaId& id) {
  return std::string(to_string(id.kind)) + ' ' + std::to_string(id.number);
}

// Of a soft limit that was `before` since then. A higher one is another one: who is not above it any more, but is when
// it is lowered again, must not have the time before that counted.
uint64_t since_when(uint64_t before, uint64_t since, uint64_t after, uint64_t now) {
  if (after == 0) return 0;
  return before == 0 || after > before ? now : since;
}

// A limit that has changed since it was written down has made it neither younger nor older.
QuotaUse still_over(QuotaUse use, const QuotaLimit& limit, uint64_t since) {
  if (limit.soft == 0 || use.used <= limit.soft || use.over_since < since) use.over_since = 0;
  return use;
}

uint64_t bytes_up_to(uint64_t limit, uint64_t used) {
  return limit - std::min(limit, used);
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
  TRY(quotas.read_default(QuotaKind::kUser));
  TRY(quotas.read_default(QuotaKind::kGroup));
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
    put_limits(*id, stored->limits);
    return true;
  };
  TRY(store_->scan(tag_prefix(kQuotaLimitsTag), {}, visit));
  return outcome;
}

Result<> Quotas::read_default(QuotaKind kind) {
  const bool user = kind == QuotaKind::kUser;
  TRY_ASSIGN(const std::optional<std::string> bytes,
             store_->get(meta_key(user ? kUserDefaultKey : kGroupDefaultKey)));
  if (!bytes) return {};
  TRY_ASSIGN(const StoredQuotaDefault stored, read_value<StoredQuotaDefault>(*bytes, "default limits"));
  (user ? user_default_ : group_default_) = stored.limits;
  return {};
}

// `changed`: as it was.
void Quotas::put_default(Batch& batch, QuotaKind kind, QuotaDefault& changed, const QuotaLimits& limits,
                         const WallTime& now) {
  const auto seconds = static_cast<uint64_t>(now.seconds);
  const QuotaLimits before = changed.limits;
  changed = {
      .limits = limits,
      .space_since = since_when(before.space.soft, changed.space_since, limits.space.soft, seconds),
      .inodes_since = since_when(before.inodes.soft, changed.inodes_since, limits.inodes.soft, seconds)};
  put_value(batch, meta_key(kind == QuotaKind::kUser ? kUserDefaultKey : kGroupDefaultKey),
            StoredQuotaDefault{changed});
}

Result<> Quotas::change(const Changes& changes, const WallTime& now) {
  if (changes.grace && (changes.grace->space > kGraceMax || changes.grace->inodes > kGraceMax))
    return fail(EINVAL, "a grace period is ten years at most");
  const bool begins = changes.on && !on();
  QuotaDefault user = user_default_;
  QuotaDefault group = group_default_;
  Batch batch;
  if (begins) {
    raise_format_version(batch, kFormatQuotas);
    put_value(batch, meta_key(kCountedKey), StoredNumber{kRootInode});
  }
  if (changes.grace) put_value(batch, meta_key(kGraceKey), *changes.grace);
  if (changes.user_default) put_default(batch, QuotaKind::kUser, user, *changes.user_default, now);
  if (changes.group_default) put_default(batch, QuotaKind::kGroup, group, *changes.group_default, now);
  if (batch.empty()) return {};
  TRY(store_->commit(batch, CommitKind::kNamespace));
  if (begins) counted_to_ = kRootInode;
  if (changes.grace) grace_ = *changes.grace;
  user_default_ = user;
  group_default_ = group;
  return {};
}

Result<> Quotas::set_limits(const QuotaId& id, const QuotaLimits& limits, const WallTime& now) {
  return set(id, are_kept(id, limits) ? std::optional(limits) : std::nullopt, now);
}

Result<> Quotas::remove_limits(const QuotaId& id, const WallTime& now) {
  return set(id, std::nullopt, now);
}

Result<> Quotas::set(const QuotaId& id, const std::optional<QuotaLimits>& limits, const WallTime& now) {
  const auto own = limits_.find(id);
  const bool one_more = limits && (own == limits_.end() || own->second.none() != limits->none());
  if (one_more && !there_may_be_more(*limits))
    return fail(EMFILE, "there are limits for as many users, groups and trees as there may be");
  TRY_ASSIGN(const QuotaUsage present, usage(id));
  const QuotaLimits future = limits ? *limits : id.number == 0 ? QuotaLimits{} : default_of(id.kind);
  const auto seconds = static_cast<uint64_t>(now.seconds);
  const QuotaUsage changed{.space = dated(present.space, future.space, seconds),
                           .inodes = dated(present.inodes, future.inodes, seconds)};
  Batch batch;
  if (limits) {
    put_value(batch, quota_key(kQuotaLimitsTag, id), StoredQuotaLimits{*limits});
  } else {
    batch.erase(quota_key(kQuotaLimitsTag, id));
  }
  if (changed != present) put_quota(batch, id, changed);
  TRY(store_->commit(batch, CommitKind::kNamespace));
  usage_.put(id, changed);
  if (limits) {
    put_limits(id, *limits);
  } else {
    erase_limits(id);
  }
  return {};
}

void Quotas::put_limits(const QuotaId& id, const QuotaLimits& limits) {
  erase_limits(id);
  limits_[id] = limits;
  if (limits.none()) ++exempt_;
}

void Quotas::erase_limits(const QuotaId& id) {
  const auto own = limits_.find(id);
  if (own == limits_.end()) return;
  if (own->second.none()) --exempt_;
  limits_.erase(own);
}

void Quotas::forget_tree(TreeNumber number) {
  const QuotaId id{QuotaKind::kTree, number.value};
  trees_.leave(number);
  erase_limits(id);
  usage_.erase(id);
  departures_.erase(id);
  if (recount_) recount_->sums.erase(id);
}

QuotaLimits Quotas::limits_of(const QuotaId& id) const {
  const auto found = limits_.find(id);
  if (found != limits_.end()) return found->second;
  return id.number == 0 ? QuotaLimits{} : default_of(id.kind);
}

QuotaLimits Quotas::default_of(QuotaKind kind) const {
  if (kind == QuotaKind::kTree) return {};
  return kind == QuotaKind::kUser ? user_default_.limits : group_default_.limits;
}

bool Quotas::has_default_limits(const QuotaId& id) const {
  return id.number != 0 && !default_of(id.kind).none() && !limits_.contains(id);
}

QuotaUsage Quotas::current(const QuotaId& id, QuotaUsage usage) const {
  if (usage.space.over_since == 0 && usage.inodes.over_since == 0) return usage;
  const QuotaLimits limits = limits_of(id);
  QuotaDefault since;
  if (has_default_limits(id)) since = id.kind == QuotaKind::kUser ? user_default_ : group_default_;
  return {.space = still_over(usage.space, limits.space, since.space_since),
          .inodes = still_over(usage.inodes, limits.inodes, since.inodes_since)};
}

bool Quotas::holds(const QuotaId& id) const {
  if (!counted()) return false;
  if (id.kind != QuotaKind::kTree) return true;
  const QuotaTree* const tree = trees_.find({id.number});
  return tree != nullptr && tree->complete;
}

Result<QuotaUsage> Quotas::usage(const QuotaId& id) {
  if (const QuotaUsage* const cached = usage_.find(id)) return current(id, *cached);
  QuotaUsage usage;
  TRY_ASSIGN(const std::optional<std::string> bytes, store_->get(quota_key(kQuotaTag, id)));
  if (bytes) {
    const auto stored = read_value<StoredQuota>(*bytes, "what a quota counts");
    if (!stored) return std::unexpected(stored.error().in(name_of(id)));
    usage = stored->usage;
  }
  usage_.put(id, usage);
  return current(id, usage);
}

Result<std::vector<Quotas::Entry>> Quotas::page(const QuotaId& from, size_t most) {
  std::vector<Entry> entries;
  Result<> outcome;
  const auto visit = [&](std::string_view key, std::string_view value) {
    const auto id = id_of(kQuotaTag, key);
    auto stored = read_value<StoredQuota>(value, "what a quota counts");
    if (!id) stored = fail(EUCLEAN, "the metadata store counts for nobody");
    if (!stored) {
      outcome = std::unexpected(id ? stored.error().in(name_of(*id)) : stored.error());
      return false;
    }
    entries.push_back({*id, current(*id, stored->usage)});
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

Result<Quotas::Allowance> Quotas::space_left(const Owners& owners, const WallTime& now) {
  Allowance least;
  for (const QuotaId& id : owners) {
    if (limits_of(id).space.none() || !holds(id)) continue;
    TRY_ASSIGN(const QuotaUsage usage, this->usage(id));
    const uint64_t left = space_left(id, usage, now);
    if (left < least.bytes) least = {.bytes = left, .of = id};
  }
  return least;
}

uint64_t Quotas::space_left(const QuotaId& id, const QuotaUsage& usage, const WallTime& now) const {
  const QuotaLimit limit = limits_of(id).space;
  uint64_t left = UINT64_MAX;
  if (limit.hard != 0) left = bytes_up_to(limit.hard, usage.space.used);
  // Above the soft limit nothing more is to be had once the time is up; below it, up to it.
  const bool late = limit.soft != 0 && (usage.space.over_since != 0 || grace_.space == 0) &&
                    static_cast<uint64_t>(now.seconds) >= usage.space.over_since + grace_.space;
  return late ? std::min(left, bytes_up_to(limit.soft, usage.space.used)) : left;
}

Result<Quotas::Standing> Quotas::standing(const Owners& owners, const WallTime& now) {
  Standing least;
  std::optional<std::pair<uint64_t, uint64_t>> least_left;
  for (const QuotaId& id : owners) {
    TRY_ASSIGN(const QuotaUsage usage, this->usage(id));
    std::pair<uint64_t, uint64_t> left{UINT64_MAX, UINT64_MAX};
    if (holds(id)) {
      const QuotaLimit limit = limits_of(id).space;
      left = {space_left(id, usage, now),
              limit.soft != 0 ? bytes_up_to(limit.soft, usage.space.used) : UINT64_MAX};
    }
    least.hard_left = std::min(least.hard_left, left.first);
    least.soft_left = std::min(least.soft_left, left.second);
    if (least_left && left >= *least_left) continue;
    least_left = left;
    least.used = usage.space.used;
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
  TRY_ASSIGN(Slice slice, slice_from(counted_to_, most));
  // What is to be added to is read before there is any effect.
  for (const Inode& inode : slice.inodes) bring(inode);
  return slice;
}

Result<Quotas::Slice> Quotas::slice_from(InodeId from, size_t most) {
  Slice slice{.inodes = {}, .end = kAllCounted};
  const auto visit = [&](std::string_view key, std::string_view value) {
    if (slice.inodes.size() == most) {
      slice.end = slice.inodes.back().id + 1;
      return false;
    }
    // One that cannot be read counts for nobody: there is a problem, as --check tells, but not this one.
    if (auto inode = read_value<Inode>(value, "an inode")) {
      slice.inodes.push_back(*std::move(inode));
    } else {
      log_error("quotas", "quota-inode-unreadable inode={} {}",
                number_of_key(kInodeTag, key).value_or(kNoInode), inode.error().to_string());
    }
    return true;
  };
  TRY(store_->scan(tag_prefix(kInodeTag), number_key(kInodeTag, from), visit));
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

Result<> Quotas::begin_recount() {
  if (!counted()) return fail(EBUSY, "quotas are off, or what is there is still being counted");
  if (recount_) return fail(EBUSY, "all is being counted again already");
  recount_.emplace();
  return {};
}

Result<Quotas::Slice> Quotas::next_recount_slice(size_t most) {
  return slice_from(recounted_to(), most);
}

void Quotas::recount(const Slice& slice) {
  for (const Inode& inode : slice.inodes) {
    for (const QuotaId& id : owners_of(inode)) recount_->add(id, static_cast<int64_t>(inode.space_used), 1);
  }
  recount_->counted_to = slice.end;
}

Result<Quotas::Comparison> Quotas::compare(const QuotaId& from, size_t most) {
  std::map<QuotaId, QuotaUsage> all;
  TRY_ASSIGN(const std::vector<Entry> recorded, page(from, most));
  for (const auto& [id, usage] : recorded) all[id] = usage;
  const auto& sums = recount_->sums;
  size_t added = 0;
  for (auto at = sums.lower_bound(from); at != sums.end() && added < most; ++at, ++added)
    all.try_emplace(at->first);
  Comparison comparison;
  size_t compared = 0;
  for (const auto& [id, usage] : all) {
    if (compared++ == most) {
      comparison.next = id;
      return comparison;
    }
    const auto sum = sums.find(id);
    const QuotaRecount::Sum counted = sum == sums.end() ? QuotaRecount::Sum{} : sum->second;
    if (!counted.is(usage)) comparison.wrong.push_back({.id = id, .on_record = usage, .counted = counted});
  }
  if (recorded.size() == most || added == most) comparison.next = behind(all.rbegin()->first);
  return comparison;
}

Result<> Quotas::mend(const std::vector<Wrong>& wrong, const WallTime& now) {
  const auto seconds = static_cast<uint64_t>(now.seconds);
  Batch batch;
  std::vector<Entry> mended;
  for (const auto& [id, on_record, counted] : wrong) {
    const QuotaLimits limits = limits_of(id);
    QuotaUsage usage = on_record;
    usage.space.used = counted.space;
    usage.inodes.used = counted.inodes;
    usage = {.space = dated(usage.space, limits.space, seconds),
             .inodes = dated(usage.inodes, limits.inodes, seconds)};
    put_quota(batch, id, usage);
    mended.push_back({id, usage});
  }
  TRY(store_->commit(batch, CommitKind::kNamespace));
  for (const auto& [id, usage] : mended) usage_.put(id, usage);
  return {};
}

}  // namespace pnfsrdma::mds

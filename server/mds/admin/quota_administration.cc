// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/quota_administration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/admin/path_lookup.h"
#include "server/mds/meta/read_then.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {
namespace {

QuotaKind stored(console::QuotaKind kind) {
  switch (kind) {
    case console::QuotaKind::kUser:
      return QuotaKind::kUser;
    case console::QuotaKind::kGroup:
      return QuotaKind::kGroup;
    case console::QuotaKind::kTree:
      break;
  }
  return QuotaKind::kTree;
}

console::QuotaKind shown(QuotaKind kind) {
  switch (kind) {
    case QuotaKind::kUser:
      return console::QuotaKind::kUser;
    case QuotaKind::kGroup:
      return console::QuotaKind::kGroup;
    case QuotaKind::kTree:
      break;
  }
  return console::QuotaKind::kTree;
}

QuotaId id_of(const QuotaAdministration::Place& place) {
  return {stored(place.kind), place.id};
}

console::QuotaUse shown(const QuotaUse& use, uint64_t grace) {
  console::QuotaUse shown{.used = use.used, .soft_until = {}};
  if (use.over_since != 0)
    shown.soft_until = WallTime{.seconds = static_cast<int64_t>(use.over_since + grace), .nanoseconds = 0};
  return shown;
}

console::QuotaLimit shown(const QuotaLimit& limit) {
  return {.soft = limit.soft, .hard = limit.hard};
}

console::QuotaLimits shown(const QuotaLimits& limits) {
  return {.space = shown(limits.space), .inodes = shown(limits.inodes)};
}

console::QuotaSource source_of(const Quotas& quotas, const QuotaId& id) {
  if (quotas.limits().contains(id)) return console::QuotaSource::kOwn;
  return quotas.has_default_limits(id) ? console::QuotaSource::kDefault : console::QuotaSource::kNone;
}

Result<QuotaLimit> checked(const console::QuotaLimit& limit, std::string_view of) {
  if (limit.hard != 0 && limit.soft > limit.hard)
    return fail(EINVAL, fmt::format("the soft limit of {} is above the hard one", of));
  return QuotaLimit{.soft = limit.soft, .hard = limit.hard};
}

Result<QuotaLimits> checked(const console::QuotaLimits& limits) {
  TRY_ASSIGN(const QuotaLimit space, checked(limits.space, "space"));
  TRY_ASSIGN(const QuotaLimit inodes, checked(limits.inodes, "inodes"));
  return QuotaLimits{space, inodes};
}

Error no_tree(uint64_t number) {
  return {ENOENT, fmt::format("there is no quota tree {}", number)};
}

// In the words and errors of console::Administration.
Error why_no_tree(nfs4::Status status, const std::string& path) {
  switch (status) {
    case nfs4::Status::kNotDir:
    case nfs4::Status::kSymlink:
      return {EINVAL, path + " is no directory"};
    case nfs4::Status::kRoFs:
      return {EINVAL, path + " is in a snapshot"};
    case nfs4::Status::kNameTooLong:
      return {EINVAL, "the path is too long"};
    case nfs4::Status::kExist:
      return {EEXIST, path + " is a quota tree already"};
    case nfs4::Status::kNotEmpty:
      return {EBUSY, path + " lies in a quota tree, or has one in it: a file counts for one tree only"};
    case nfs4::Status::kMLink:
      return {EBUSY,
              fmt::format("there are {} quota trees, and there can be no more", QuotaTrees::kTreesMax)};
    case nfs4::Status::kDelay:
    case nfs4::Status::kNoSpc:
      return {EAGAIN, "the metadata takes no changes just now: try again"};
    default:
      return {EIO, fmt::format("changing the metadata of {} ({})", path, nfs4::to_string(status))};
  }
}

}  // namespace

QuotaAdministration::QuotaAdministration(EventLoop& loop, const Clock& clock, Namespace& names)
    : clock_(clock),
      names_(names),
      counter_(loop, clock, names),
      walk_(loop, names),
      recounter_(loop, clock, names) {
  counter_.start();
  walk_.start();
}

console::QuotaSettings QuotaAdministration::settings() const {
  const Quotas& quotas = names_.quotas();
  const console::QuotaState state = !quotas.on()       ? console::QuotaState::kOff
                                    : quotas.counted() ? console::QuotaState::kOn
                                                       : console::QuotaState::kCounting;
  return {.state = state,
          .counted_share = counter_.share(),
          .space_grace_seconds = quotas.grace().space,
          .inode_grace_seconds = quotas.grace().inodes,
          .user_default = mds::shown(quotas.default_of(QuotaKind::kUser)),
          .group_default = mds::shown(quotas.default_of(QuotaKind::kGroup))};
}

// Where it was, if it is there still.
std::string QuotaAdministration::path_of(const QuotaTree& tree) {
  if (const auto found = find_path(names_, tree.path); found && (*found)->id == tree.root) return tree.path;
  return names_.last_path(tree.root).value_or("");
}

Result<console::Quota> QuotaAdministration::shown(const QuotaId& id, const QuotaUsage& usage) {
  const Quotas& quotas = names_.quotas();
  const QuotaLimits limits = quotas.limits_of(id);
  console::Quota quota{.kind = mds::shown(id.kind),
                       .id = id.number,
                       .path = {},
                       .complete = quotas.holds(id),
                       .limits_from = source_of(quotas, id),
                       .limits = mds::shown(limits),
                       .space = mds::shown(usage.space, quotas.grace().space),
                       .inodes = mds::shown(usage.inodes, quotas.grace().inodes)};
  if (id.kind != QuotaKind::kTree) return quota;
  const QuotaTree* const tree = quotas.trees().find({id.number});
  if (tree == nullptr) return std::unexpected(no_tree(id.number));
  quota.path = path_of(*tree);
  return quota;
}

// Only reads.
Result<console::Quota> QuotaAdministration::look(const QuotaId& id) {
  TRY_ASSIGN(const QuotaUsage usage, names_.quotas().usage(id));
  return shown(id, usage);
}

// Only reads. Those that have something, those that have limits only, and trees in which nothing is counted yet.
Result<std::vector<console::Quota>> QuotaAdministration::look(const QuotaId& from,
                                                              std::optional<QuotaKind> kind, size_t most) {
  Quotas& quotas = names_.quotas();
  std::map<QuotaId, QuotaUsage> found;
  TRY_ASSIGN(const std::vector<Quotas::Entry> used, quotas.page(from, most));
  for (const auto& [id, usage] : used) found[id] = usage;
  const auto& limits = quotas.limits();
  size_t added = 0;
  for (auto at = limits.lower_bound(from); at != limits.end() && added < most; ++at, ++added)
    found.try_emplace(at->first);
  for (const auto& [number, tree] : quotas.trees().all()) {
    const QuotaId id{QuotaKind::kTree, number.value};
    if (id >= from) found.try_emplace(id);
  }
  std::vector<console::Quota> all;
  for (const auto& [id, usage] : found) {
    if (all.size() == most || (kind && id.kind != *kind)) break;
    TRY_ASSIGN(console::Quota quota, shown(id, usage));
    all.push_back(std::move(quota));
  }
  return all;
}

void QuotaAdministration::page(std::optional<console::QuotaKind> kind, const std::optional<Place>& after,
                               size_t most, Done<console::QuotaPage> done) {
  const auto only = kind ? std::optional(stored(*kind)) : std::nullopt;
  QuotaId from = after ? behind(id_of(*after)) : QuotaId{};
  if (only) from = std::max(from, QuotaId{*only, 0});
  read_then(
      names_.store(), lifetime_.token(), [this, from, only, most] { return look(from, only, most); },
      [this, done = std::move(done)](Result<std::vector<console::Quota>> all) {
        if (!all) return done(std::unexpected(all.error()));
        done(console::QuotaPage{.settings = settings(), .all = *std::move(all)});
      });
}

void QuotaAdministration::show(const QuotaId& id, Done<console::Quota> done) {
  read_then(
      names_.store(), lifetime_.token(), [this, id] { return look(id); },
      [done = std::move(done)](Result<console::Quota> quota) { done(std::move(quota)); });
}

void QuotaAdministration::one(const Place& place, Done<console::Quota> done) {
  show(id_of(place), std::move(done));
}

void QuotaAdministration::when_durable(std::function<void()> then) {
  KeyValueStore& store = names_.store();
  store.when_synced(store.last_namespace_sequence(), lifetime_.guard(std::move(then)));
}

Result<> QuotaAdministration::begin() {
  Quotas& quotas = names_.quotas();
  if (quotas.on()) return {};
  TRY(quotas.begin());
  counter_.start();
  return {};
}

void QuotaAdministration::limit(const Place& place, const std::optional<console::QuotaLimits>& wanted,
                                Done<console::Quota> done) {
  const QuotaId id = id_of(place);
  if (id.kind != QuotaKind::kTree && id.number > UINT32_MAX)
    return done(fail(EINVAL, fmt::format("{} is no number of a {}", id.number, to_string(id.kind))));
  const auto limits = checked(wanted.value_or(console::QuotaLimits{}));
  if (!limits) return done(std::unexpected(limits.error()));
  look_then(
      names_.store(), lifetime_.token(), [this, id] { static_cast<void>(names_.quotas().usage(id)); },
      [this, id, limits = wanted ? std::optional(*limits) : std::nullopt, done = std::move(done)]() mutable {
        if (const auto set = this->set(id, limits); !set) return done(std::unexpected(set.error()));
        when_durable([this, id, done = std::move(done)]() mutable { show(id, std::move(done)); });
      });
}

Result<> QuotaAdministration::set(const QuotaId& id, const std::optional<QuotaLimits>& limits) {
  Quotas& quotas = names_.quotas();
  if (id.kind == QuotaKind::kTree && quotas.trees().find({id.number}) == nullptr)
    return std::unexpected(no_tree(id.number));
  const auto own = quotas.limits().find(id);
  const bool has_own = own != quotas.limits().end();
  const bool same = limits && Quotas::are_kept(id, *limits) ? has_own && own->second == *limits : !has_own;
  if (same) return {};
  if (!limits) {
    TRY(quotas.remove_limits(id, clock_.wall_now()));
    log_info("quotas", "quota-removed kind={} id={}", to_string(id.kind), id.number);
    return {};
  }
  const bool one_more = !has_own || own->second.none() != limits->none();
  if (one_more && !quotas.there_may_be_more(*limits))
    return fail(EBUSY,
                fmt::format("{} users, groups and trees {}, and there can be no more", Quotas::kLimitsMax,
                            limits->none() ? "are told to have no limits" : "have limits"));
  TRY(begin());
  TRY(quotas.set_limits(id, *limits, clock_.wall_now()));
  log_info("quotas", "quota-set kind={} id={} space={}/{} inodes={}/{}", to_string(id.kind), id.number,
           limits->space.soft, limits->space.hard, limits->inodes.soft, limits->inodes.hard);
  return {};
}

void QuotaAdministration::add_tree(const std::string& path, Done<console::Quota> done) {
  read_then(
      names_.store(), lifetime_.token(), [this, path] { return future_root(path); },
      [this, path, done = std::move(done)](const Result<InodeId>& directory) mutable {
        if (!directory) return done(std::unexpected(directory.error()));
        const auto tree = make_tree(path, *directory);
        if (!tree) return done(std::unexpected(tree.error()));
        when_durable([this, id = QuotaId{QuotaKind::kTree, tree->number.value},
                      done = std::move(done)]() mutable { show(id, std::move(done)); });
      });
}

// Only reads: a directory that can become a tree.
Result<InodeId> QuotaAdministration::future_root(const std::string& path) {
  TRY_ASSIGN(const InodePointer directory, find_path(names_, path));
  const auto possible = names_.check_tree_root(directory->id);
  if (!possible) return std::unexpected(why_no_tree(possible.error(), path));
  return directory->id;
}

Result<QuotaTree> QuotaAdministration::make_tree(const std::string& path, InodeId directory) {
  TRY(begin());
  const auto tree = names_.begin_tree(directory, path);
  if (!tree) return std::unexpected(why_no_tree(tree.error(), path));
  log_info("quotas", "quota-tree-made tree={} path={}", tree->number.value, path);
  walk_.start();
  return *tree;
}

void QuotaAdministration::remove_tree(uint64_t id, Done<> done) {
  const QuotaTree* const tree = names_.quotas().trees().find({id});
  if (tree == nullptr) return done(std::unexpected(no_tree(id)));
  const std::string path = tree->path;
  if (const auto ended = names_.end_tree({id}); !ended)
    return done(std::unexpected(why_no_tree(ended.error(), path)));
  log_info("quotas", "quota-tree-removed tree={} path={}", id, path);
  when_durable([done = std::move(done)] { done({}); });
}

// What is as it is already is left out. The first limit switches them on.
Result<Quotas::Changes> QuotaAdministration::wanted_changes(
    const console::Administration::QuotaChanges& changes) const {
  const Quotas& quotas = names_.quotas();
  Quotas::Changes wanted;
  const auto take = [&quotas](const std::optional<console::QuotaLimits>& limits, QuotaKind kind,
                              std::optional<QuotaLimits>& taken) -> Result<> {
    if (!limits) return {};
    TRY_ASSIGN(const QuotaLimits good, checked(*limits));
    if (good != quotas.default_of(kind)) taken = good;
    return {};
  };
  TRY(take(changes.user_default, QuotaKind::kUser, wanted.user_default));
  TRY(take(changes.group_default, QuotaKind::kGroup, wanted.group_default));
  QuotaGrace grace = quotas.grace();
  grace.space = changes.space_grace_seconds.value_or(grace.space);
  grace.inodes = changes.inode_grace_seconds.value_or(grace.inodes);
  if (grace != quotas.grace()) wanted.grace = grace;
  wanted.on = changes.on || wanted.user_default || wanted.group_default;
  return wanted;
}

void QuotaAdministration::change(const console::Administration::QuotaChanges& changes,
                                 Done<console::QuotaSettings> done) {
  const auto wanted = wanted_changes(changes);
  if (!wanted) return done(std::unexpected(wanted.error()));
  Quotas& quotas = names_.quotas();
  if (const auto changed = quotas.change(*wanted, clock_.wall_now()); !changed)
    return done(std::unexpected(changed.error()));
  counter_.start();
  for (const auto& [kind, limits] :
       {std::pair{QuotaKind::kUser, wanted->user_default}, {QuotaKind::kGroup, wanted->group_default}}) {
    if (!limits) continue;
    log_info("quotas", "quota-default-set kind={} space={}/{} inodes={}/{}", to_string(kind),
             limits->space.soft, limits->space.hard, limits->inodes.soft, limits->inodes.hard);
  }
  when_durable([this, done = std::move(done)] { done(settings()); });
}

Result<console::Job> QuotaAdministration::recount(JobTable& jobs, const std::string& user) {
  TRY(names_.quotas().begin_recount());
  auto job = jobs.start(console::JobKind::kRecount, "quotas", user,
                        [this](JobTable::Events events) { return recounter_.start(std::move(events)); });
  if (!job) names_.quotas().end_recount();
  return job;
}

}  // namespace pnfsrdma::mds

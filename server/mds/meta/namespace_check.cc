// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/namespace_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "server/mds/meta/checkpoint_view.h"
#include "server/mds/meta/dead_memory.h"
#include "server/mds/meta/extents.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/quota_check.h"
#include "server/mds/meta/shared_runs.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

// What is kept of an inode while everything that refers to it is read.
struct Seen {
  FileType type = FileType::kRegular;
  uint32_t nlink = 0;
  uint32_t flags = 0;
  uint64_t size = 0;
  uint64_t space_used = 0;
  InodeId parent = kNoInode;
  uint64_t next_cookie = 0;
  TreeNumber tree;

  // Counted from the other records.
  uint32_t names = 0;
  uint32_t subdirectories = 0;
  uint64_t entries = 0;
  uint64_t cookies = 0;
  uint64_t extent_bytes = 0;
  InodeId named_in = kNoInode;
  bool listed_orphan = false;
  bool xattrs = false;
  bool access_acl = false;
  bool default_acl = false;
};

class Checker {
 public:
  explicit Checker(KeyValueStore& store) : store_(store) {}

  Result<NamespaceReport> run() {
    TRY(read_inodes());
    TRY(read_names());
    TRY(read_cookies());
    TRY(read_orphans_and_tails());
    TRY(read_extents());
    TRY(read_shares());
    TRY(read_xattrs());
    TRY(read_acls());
    check_inodes();
    check_shares();
    return std::move(report_);
  }

  // What run() does, and the same with each snapshot's copy.
  Result<NamespaceReport> run_with_snapshots() {
    TRY(read_snapshots());
    TRY_ASSIGN(report_, run());
    TRY(read_dead());
    for (const auto& [number, name] : ready_) check_snapshot(number, name);
    return std::move(report_);
  }

 private:
  struct Place {
    uint64_t logical;
    uint64_t length;
    InodeId inode;
    SnapshotNumber born;
  };
  // Memory of a file, or of snapshots: of those behind its birth, up to its death.
  struct Kept {
    LogicalRange memory;
    SnapshotNumber born;
    SnapshotNumber died;
    bool is_of(SnapshotNumber snapshot) const { return born < snapshot && snapshot <= died; }
  };
  // From there on so many more extents name it, and the records say so many more.
  struct Edge {
    uint64_t logical;
    int64_t extents;
    int64_t recorded;
  };
  struct Shared {
    uint64_t begin;
    uint64_t end;
  };

  template <typename... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    if (report_.problems.size() < kProblemsMax) {
      report_.problems.push_back(fmt::format(format, std::forward<Args>(args)...));
    }
  }

  Seen* find(InodeId id) {
    const auto found = inodes_.find(id);
    return found == inodes_.end() ? nullptr : &found->second;
  }

  // Scans a tag's records; a value that cannot be read is a problem, not an error.
  template <typename T, typename Visit>
  Result<> scan(char tag, const char* what, Visit visit) {
    return store_.scan(tag_prefix(tag), {}, [&](std::string_view key, std::string_view bytes) {
      const auto value = read_value<T>(bytes, what);
      if (value) {
        visit(key, *value);
      } else {
        problem("{}: key {}", value.error().what(), to_hex(as_bytes(key)));
      }
      return true;
    });
  }

  Result<> read_inodes() {
    TRY_ASSIGN(const std::optional<std::string> next, store_.get(meta_key("next-inode")));
    if (!next) {
      problem("there is no inode counter");
    } else {
      TRY_ASSIGN(const StoredNumber reserved, read_value<StoredNumber>(*next, "an inode counter"));
      inode_bound_ = reserved.number;
    }
    TRY_ASSIGN(quotas_, QuotaCheck::open(store_));
    QuotaCheck& quotas = *quotas_;
    TRY(scan<Inode>(kInodeTag, "an inode", [&](std::string_view key, const Inode& inode) {
      if (number_of_key(kInodeTag, key) != inode.id)
        problem("inode {} is stored under another number", inode.id);
      if (inode.id >= inode_bound_) problem("inode {} is not below the inode counter", inode.id);
      inodes_[inode.id] = {.type = inode.type,
                           .nlink = inode.nlink,
                           .flags = inode.flags,
                           .size = inode.size,
                           .space_used = inode.space_used,
                           .parent = inode.parent,
                           .next_cookie = inode.next_cookie,
                           .tree = inode.tree};
      quotas.add(inode);
      ++report_.inodes;
    }));
    return quotas.compare([&](const std::string& difference) { problem("{}", difference); });
  }

  Result<> read_names() {
    return scan<NameEntry>(kNameTag, "a name", [&](std::string_view key, const NameEntry& entry) {
      const KeyName place = name_of_key(key).value_or(KeyName{});
      ++report_.names;
      Seen* directory = find(place.directory);
      if (directory == nullptr || directory->type != FileType::kDirectory) {
        return problem("name '{}' is in {}, which is no directory", place.name, place.directory);
      }
      ++directory->entries;
      if (entry.cookie >= directory->next_cookie) problem("name '{}' has a cookie of the future", place.name);
      Seen* child = find(entry.inode);
      if (child == nullptr) return problem("name '{}' in {} dangles", place.name, place.directory);
      if (child->type != entry.type) problem("name '{}' in {} has another type", place.name, place.directory);
      ++child->names;
      child->named_in = place.directory;
      if (child->type == FileType::kDirectory) ++directory->subdirectories;
      const bool placed = quotas_->is_placed({.directory_tree = directory->tree,
                                              .inode = entry.inode,
                                              .tree = child->tree,
                                              .is_directory = child->type == FileType::kDirectory});
      if (!placed)
        problem("name '{}' in {}: inode {} is not counted for the quota tree that it is in", place.name,
                place.directory, entry.inode);
    });
  }

  Result<> read_cookies() {
    return scan<StoredCookie>(kCookieTag, "a cookie", [&](std::string_view key, const StoredCookie& stored) {
      const KeyNumbers place = numbers_of_key(kCookieTag, key).value_or(KeyNumbers{});
      if (Seen* directory = find(place.first)) ++directory->cookies;
      const auto bytes = store_.get(name_key(place.first, stored.name));
      const auto entry = bytes && *bytes ? read_value<NameEntry>(**bytes, "a name")
                                         : Result<NameEntry>(fail(ENOENT, "no such name"));
      const NameEntry expected{stored.inode, stored.type, place.second};
      if (!entry || *entry != expected)
        problem("cookie {} of {} has no such name", place.second, place.first);
    });
  }

  Result<> read_orphans_and_tails() {
    TRY(store_.scan(tag_prefix(kOrphanTag), {}, [&](std::string_view key, std::string_view) {
      ++report_.orphans;
      const InodeId id = number_of_key(kOrphanTag, key).value_or(kNoInode);
      Seen* inode = find(id);
      if (inode == nullptr) {
        problem("orphan {} does not exist", id);
      } else {
        inode->listed_orphan = true;
      }
      return true;
    }));
    TRY_ASSIGN(const std::vector<InodeId> tails, Extents(store_).dirty_tails());
    report_.dirty_tails = tails.size();
    for (const InodeId id : tails) {
      const Seen* inode = find(id);
      if (inode == nullptr || inode->type != FileType::kRegular)
        problem("the dirty tail of {} has no file", id);
    }
    return {};
  }

  Result<> read_extents() {
    InodeId last_inode = kNoInode;
    uint64_t last_end = 0;
    return Extents(store_).scan([&](InodeId id, const Extent& extent) {
      ++report_.extents;
      report_.extent_bytes += extent.length;
      if (id != last_inode) last_end = 0;
      if (extent.file_offset < last_end) problem("file {} has two extents at {}", id, extent.file_offset);
      last_inode = id;
      last_end = extent.end();
      const bool aligned = (extent.file_offset | extent.logical | extent.length) % kGrainSize == 0;
      if (!aligned) problem("file {} has an extent at {} that is not whole grains", id, extent.file_offset);
      Seen* inode = find(id);
      if (inode == nullptr || inode->type != FileType::kRegular) {
        problem("an extent belongs to {}, which is no file", id);
      } else {
        inode->extent_bytes += extent.length;
      }
      places_.push_back({extent.logical, extent.length, id, extent.born});
      return true;
    });
  }

  Result<> read_snapshots() {
    TRY_ASSIGN(const std::optional<std::string> last, store_.get(meta_key("snapshot")));
    uint64_t newest = 0;
    if (last) {
      TRY_ASSIGN(const StoredNumber stored, read_value<StoredNumber>(*last, "the last snapshot's number"));
      newest = stored.number;
    }
    return store_.scan(tag_prefix(kSnapshotTag), {}, [&](std::string_view key, std::string_view bytes) {
      const uint64_t number = number_of_key(kSnapshotTag, key).value_or(0);
      const auto snapshot = read_snapshot(static_cast<SnapshotNumber>(number), bytes);
      if (!snapshot) {
        problem("{}: key {}", snapshot.error().what(), to_hex(as_bytes(key)));
      } else if (number == 0 || number > newest) {
        problem("snapshot {} has an impossible number", number);
      } else {
        if (!is_snapshot_name(snapshot->name)) problem("snapshot {} has an impossible name", number);
        if (snapshot->is_ready()) ready_.emplace_back(snapshot->number, snapshot->name);
      }
      return true;
    });
  }

  // What files have is not what only snapshots have; together they have all that any snapshot needs.
  Result<> read_dead() {
    TRY_ASSIGN(const std::vector<DeadRun> dead, DeadMemory(store_).page(0));
    std::vector<LogicalRange> files;
    for (const Place& place : places_) {
      files.push_back({place.logical, place.length});
      kept_.push_back({files.back(), place.born, kSnapshotsEnd});
    }
    std::ranges::sort(files);
    files = joined(files);
    for (const DeadRun& run : dead) {
      const auto at = std::ranges::upper_bound(files, run.memory.logical, {}, &LogicalRange::end);
      if (at != files.end() && at->logical < run.memory.end())
        problem("logical address {} is a snapshot's alone and a file's, too", run.memory.logical);
      kept_.push_back({run.memory, run.born, run.died});
    }
    std::ranges::sort(kept_, {}, [](const Kept& kept) { return kept.memory.logical; });
    check_deaths();
    return {};
  }

  void check_deaths() {
    uint64_t end = 0;
    for (const Kept& kept : kept_) {
      if (kept.died == kSnapshotsEnd) continue;
      if (kept.memory.logical < end) problem("logical address {} has died twice", kept.memory.logical);
      end = std::max(end, kept.memory.end());
    }
  }

  // Of ranges in order: what touches or overlaps is one.
  static std::vector<LogicalRange> joined(const std::vector<LogicalRange>& ranges) {
    std::vector<LogicalRange> joined;
    for (const LogicalRange& range : ranges) {
      if (joined.empty() || joined.back().end() < range.logical) {
        joined.push_back(range);
      } else {
        joined.back().length = std::max(joined.back().end(), range.end()) - joined.back().logical;
      }
    }
    return joined;
  }

  void check_snapshot(SnapshotNumber number, const std::string& name) {
    CheckpointView copy(store_, number);
    Checker then(copy);
    const auto found = then.run();
    std::vector<LogicalRange> its_own;
    for (const Kept& kept : kept_) {
      if (kept.is_of(number)) its_own.push_back(kept.memory);
    }
    its_own = joined(its_own);
    for (const Place& place : then.places_) {
      const auto at = std::ranges::upper_bound(its_own, place.logical, {}, &LogicalRange::end);
      if (at == its_own.end() || at->logical > place.logical || at->end() < place.logical + place.length)
        problem("snapshot {} ('{}'): memory of file {} at logical address {} is not the snapshot's any more",
                number, name, place.inode, place.logical);
    }
    if (!found) return problem("snapshot {} ('{}'): {}", number, name, found.error().to_string());
    for (const std::string& one : found->problems) problem("snapshot {} ('{}'): {}", number, name, one);
  }

  Result<> read_xattrs() {
    return scan<StoredXattrs>(kXattrTag, "extended attributes",
                              [&](std::string_view key, const StoredXattrs& row) {
                                const InodeId id = number_of_key(kXattrTag, key).value_or(kNoInode);
                                Seen* inode = find(id);
                                if (inode == nullptr)
                                  return problem("extended attributes of {}, which is no inode", id);
                                if (row.all.empty())
                                  problem("inode {} has a row of no extended attributes", id);
                                inode->xattrs = true;
                              });
  }

  Result<> read_acls() {
    return scan<StoredAcl>(kAclTag, "an ACL", [&](std::string_view key, const StoredAcl& row) {
      const KeyNumbers place = numbers_of_key(kAclTag, key).value_or(KeyNumbers{});
      Seen* inode = find(place.first);
      if (inode == nullptr) return problem("an ACL of {}, which is no inode", place.first);
      const AclEntries entries(row.entries);
      bool valid = false;
      if (place.second == static_cast<uint64_t>(AclKind::kAccess)) {
        inode->access_acl = true;
        const auto acl = PosixAcl::of_stored(entries, 0);
        valid = inode->type != FileType::kSymlink && acl && acl->beyond_mode() == entries;
      } else if (place.second == static_cast<uint64_t>(AclKind::kDefault)) {
        inode->default_acl = true;
        const auto acl = PosixAcl::of(entries);
        valid = inode->type == FileType::kDirectory && acl && acl->entries() == entries;
      }
      if (!valid) problem("inode {} has an ACL that cannot be", place.first);
    });
  }

  void check_flags(InodeId id, const Seen& inode) {
    if (inode.xattrs != ((inode.flags & kInodeHasXattrs) != 0))
      problem("inode {}: the flag of its extended attributes is wrong", id);
    if (inode.access_acl != ((inode.flags & kInodeHasAccessAcl) != 0))
      problem("inode {}: the flag of its access ACL is wrong", id);
    if (inode.default_acl != ((inode.flags & kInodeHasDefaultAcl) != 0))
      problem("inode {}: the flag of its default ACL is wrong", id);
  }

  void check_inodes() {
    if (find(kRootInode) == nullptr) problem("there is no root directory");
    for (const auto& [id, inode] : inodes_) {
      check_flags(id, inode);
      if (inode.type == FileType::kDirectory) {
        check_directory(id, inode);
      } else {
        check_file(id, inode);
      }
    }
  }

  void check_directory(InodeId id, const Seen& inode) {
    ++report_.directories;
    const bool root = id == kRootInode;
    if (inode.names != (root ? 0U : 1U)) problem("directory {} has {} names", id, inode.names);
    if (inode.nlink != 2 + inode.subdirectories) problem("directory {} has link count {}", id, inode.nlink);
    if (inode.size != inode.entries)
      problem("directory {} has {} entries, not {}", id, inode.entries, inode.size);
    if (inode.cookies != inode.entries) problem("directory {} has {} cookies", id, inode.cookies);
    const InodeId expected = root ? kRootInode : inode.named_in;
    if (inode.parent != expected) problem("directory {} has parent {}, not {}", id, inode.parent, expected);
    if (!reaches_root(id)) problem("directory {} does not lead to the root", id);
  }

  void check_file(InodeId id, const Seen& inode) {
    const bool flagged = (inode.flags & kInodeOrphan) != 0;
    if (inode.nlink != inode.names)
      problem("inode {} has link count {}, {} names", id, inode.nlink, inode.names);
    if (inode.listed_orphan != (inode.names == 0)) problem("inode {}: the orphan list is wrong", id);
    if (flagged != inode.listed_orphan) problem("inode {}: the orphan flag is wrong", id);
    if (inode.space_used != inode.extent_bytes) {
      problem("inode {} uses {} bytes, its extents have {}", id, inode.space_used, inode.extent_bytes);
    }
  }

  // Follows parents; every directory on the way to one that is known to be good is good as well.
  bool reaches_root(InodeId id) {
    std::vector<InodeId> way;
    while (id != kRootInode && !rooted_.contains(id)) {
      const Seen* inode = find(id);
      if (inode == nullptr || way.size() > report_.inodes) return false;
      way.push_back(id);
      id = inode->parent;
    }
    rooted_.insert(way.begin(), way.end());
    return true;
  }

  Result<> read_shares() {
    return scan<StoredShare>(kShareTag, "a shared run", [&](std::string_view key, const StoredShare& stored) {
      const uint64_t end = number_of_key(kShareTag, key).value_or(0);
      if (stored.length == 0 || stored.length > end || stored.names < 2)
        return problem("the shared run that ends at logical address {} is impossible", end);
      const uint64_t begin = end - stored.length;
      if (begin < last_share_end_) problem("two shared runs overlap at logical address {}", begin);
      last_share_end_ = end;
      const auto names = static_cast<int64_t>(stored.names);
      edges_.push_back({begin, 0, names});
      edges_.push_back({end, 0, -names});
    });
  }

  // Memory that several extents name is on record with their number, and their files say that they may have some.
  void check_shares() {
    for (const Place& place : places_) {
      edges_.push_back({place.logical, 1, 0});
      edges_.push_back({place.logical + place.length, -1, 0});
    }
    std::ranges::sort(edges_, {}, &Edge::logical);
    int64_t extents = 0;
    int64_t recorded = 0;
    for (auto edge = edges_.begin(); edge != edges_.end();) {
      const uint64_t begin = edge->logical;
      for (; edge != edges_.end() && edge->logical == begin; ++edge) {
        extents += edge->extents;
        recorded += edge->recorded;
      }
      if (recorded != (extents > 1 ? extents : 0)) wrong_count(begin, extents, recorded);
      if (extents > 1) shared_at_.push_back({begin, edge->logical});
    }
    for (const Place& place : places_) check_share_flag(place);
  }

  void check_share_flag(const Place& place) {
    const auto run = std::ranges::upper_bound(shared_at_, place.logical, {}, &Shared::end);
    const bool shares = run != shared_at_.end() && run->begin < place.logical + place.length;
    const Seen* inode = find(place.inode);
    if (shares && inode != nullptr && (inode->flags & kInodeShares) == 0)
      problem("file {} has shared memory at logical address {}, its flag says it has none", place.inode,
              run->begin);
  }

  void wrong_count(uint64_t logical, int64_t extents, int64_t recorded) {
    if (report_.problems.size() == kProblemsMax) return;
    std::string files;
    for (const Place& place : places_) {
      if (place.logical <= logical && logical < place.logical + place.length)
        files += (files.empty() ? ": files " : ", ") + std::to_string(place.inode);
    }
    problem("logical address {}: {} extents name it, the record of shared memory says {}{}", logical, extents,
            recorded, files);
  }

  KeyValueStore& store_;
  NamespaceReport report_;
  uint64_t inode_bound_ = UINT64_MAX;
  std::optional<QuotaCheck> quotas_;
  std::unordered_map<InodeId, Seen> inodes_;
  std::unordered_set<InodeId> rooted_;
  std::vector<Place> places_;
  std::vector<Edge> edges_;
  uint64_t last_share_end_ = 0;
  std::vector<Shared> shared_at_;  // in order
  std::vector<std::pair<SnapshotNumber, std::string>> ready_;
  std::vector<Kept> kept_;  // by files or snapshots, by address
};

}  // namespace

Result<NamespaceReport> check_namespace(KeyValueStore& store) {
  return Checker(store).run_with_snapshots();
}

}  // namespace pnfsrdma::mds

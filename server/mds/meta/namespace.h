// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/mds/meta/bounded_cache.h"
#include "server/mds/meta/directory_entry.h"
#include "server/mds/meta/format_version.h"
#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/name_cache.h"
#include "server/mds/meta/permissions.h"
#include "server/mds/meta/posix_acl.h"
#include "server/mds/meta/quotas.h"
#include "server/mds/meta/snapshots.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::mds {

template <typename T = void>
using Outcome = std::expected<T, nfs4::Status>;

// What a handler returns when it has to wait. Never on the wire: the COMPOUND loop keeps the operation and
// runs it again from the top, checks included, when an answer has come.
inline constexpr nfs4::Status kSuspended = static_cast<nfs4::Status>(0xFFFFFFFF);

// What a failure of the environment is on the wire: EAGAIN -> DELAY, ENOSPC -> NOSPC, EDQUOT -> DQUOT, everything else
// -> IO.
// kNotAtHand -> kSuspended.
nfs4::Status status_of(const Error& error);

// change_info4 (RFC 8881, 3.3.12); always atomic here.
struct DirectoryChange {
  uint64_t before = 0;
  uint64_t after = 0;
};

// How an existing name is met (RFC 8881, 18.16.3).
enum class CreateMode {
  kUnchecked,  // opened as it is (the caller truncates if asked to)
  kGuarded,    // kExist
  kExclusive,  // opened if it is a regular file made with the same verifier, else kExist
};

// What to make. Mode bits beyond kModeMask are dropped; an access ACL says what the lowest nine are; in a setgid
// directory the group, and for directories the setgid bit, are inherited (POSIX, as BSD and Linux have it).
struct NewInode {
  FileType type = FileType::kRegular;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;  // of a regular file; all of it a hole
  std::string symlink_target;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  CreateMode how = CreateMode::kGuarded;
  ExclusiveVerifier verifier{};
  std::optional<WallTime> atime;
  std::optional<WallTime> mtime;
  PosixAcl access_acl;   // none: the mode
  PosixAcl default_acl;  // of a directory
};

struct Created {
  InodePointer inode;
  bool existed = false;
  DirectoryChange directory;
};

struct Removed {
  InodePointer inode;  // as it is now: nlink 0 when that was the last name
  bool orphaned =
      false;  // on the orphan list: somebody must destroy() it when it is unused and its space freed
  DirectoryChange directory;
};

struct Renamed {
  InodePointer inode;
  std::optional<Removed> replaced;  // its `directory` is `target`
  DirectoryChange source;
  DirectoryChange target;
};

struct Exchanged {
  DirectoryChange first;
  DirectoryChange second;
};

struct Linked {
  InodePointer inode;
  DirectoryChange directory;
};

// What to set; absent fields stay. ctime becomes now and change moves on, unless only the allocation changes.
struct InodeUpdate {
  std::optional<uint32_t> mode;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
  std::optional<uint64_t> size;
  std::optional<uint64_t> space_used;
  std::optional<WallTime> atime;
  std::optional<WallTime> mtime;
  std::optional<WallTime> created;
  std::optional<bool> has_xattrs;  // `extra` brings or takes their row
  bool shares = false;             // some of its memory is, or may become, another file's too
  // It says what the lowest nine bits of the mode are, whatever `mode` does.
  std::optional<PosixAcl> access_acl;
  std::optional<PosixAcl> default_acl;  // of a directory; none: it goes
  bool clear_setid = false;  // data was written: setuid goes, setgid too where the group may execute
  bool space_only = false;   // space_used and extents ahead of the size: nothing a user may see
  // atime and mtime are what the holder of a delegation says they were (RFC 9754, 5). The change, and its time, follow
  // the mtime: they are never behind it, and an atime alone does not move them.
  bool by_holder = false;
};

struct NamespaceOptions {
  size_t cached_inodes = 65536;
  size_t cached_names = 131072;
  // Of the root directory, when the store is formatted.
  uint32_t root_mode = 0755;
  uint32_t root_uid = 0;
  uint32_t root_gid = 0;
};

// The tree of files over a KeyValueStore, with a write-through cache. Each operation that changes something
// is one atomic batch; it is visible at once, and a reply must wait for last_namespace_sequence(). No
// permission is checked here (permissions.h). Control loop only.
//
// Inodes of snapshots (snapshot_keys.h), and the directories that list snapshots, are read as all others are, until
// the snapshot goes (kStale), and are never changed: kRoFs, or, where only times would move, nothing happens.
//
// What changes who has how much is charged in its batch (quotas.h): kDQuot, with nothing changed. What another quota
// tree has comes and goes by no name: kXDev; a directory gets no other parent while a tree is being marked: kDelay.
//
// Errors besides those named: kStale (no such
// inode), kDelay, kNoSpc, kIo; in a request that can be run again kSuspended (request_reads.h), with nothing
// changed. Names: kInval (empty), kBadName ("." and ".."), kBadChar ('/' or NUL),
// kNameTooLong (over 255 bytes).
//
// Costs, over RocksDB: get() and lookup() in the cache no system call and no allocation (under 0.5 us); a
// change no waiting, and the one write(2) that all changes of a turn share (touch() 5 us, create() 23 us).
class Namespace final : public AclReader {
 public:
  // Makes the root directory if there is none. `boot_count` (BootRecord) must be greater than at any earlier
  // open.
  static Result<std::unique_ptr<Namespace>> open(KeyValueStore& store, const Clock& clock,
                                                 uint64_t boot_count, const NamespaceOptions& options = {});
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  // Tells whether a regular file is open or has layouts. One that is not, and has no space, goes with its
  // last name; every other is left on the orphan list. Default: all are in use.
  void set_in_use(std::function<bool(InodeId)> in_use) { in_use_ = std::move(in_use); }

  Outcome<InodePointer> get(InodeId id);
  // kNotDir (kSymlink for a symbolic link), kNoEnt.
  Outcome<InodePointer> lookup(InodeId directory, std::string_view name);
  // kNoEnt at the root.
  Outcome<InodePointer> lookup_parent(InodeId directory);
  // For people: a path that leads to the inode, by names it was found or made by since the start; in a snapshot it
  // begins with "/.snapshots/NAME", as from the root. nullopt:
  // none is known, none is left, or it is not in memory: it is not worth a wait.
  std::optional<std::string> last_path(InodeId id);

  // `extra` of this and the next four: goes into the same batch; nothing is written where nothing changes.
  // kNotDir, kExist, kInval (a symlink target of no or over kSymlinkBytesMax bytes).
  Outcome<Created> create(InodeId directory, std::string_view name, const NewInode& what,
                          const Batch& extra = {});
  // Files and directories: kNotDir, kNoEnt, kNotEmpty. See set_in_use() for what stays as an orphan; every
  // other inode is gone at once.
  Outcome<Removed> remove(InodeId directory, std::string_view name, const Batch& extra = {});
  // kNotDir, kNoEnt, kExist (a directory onto something else, or the reverse), kNotEmpty, kInval (into its
  // own subtree). Two names of one file: nothing happens.
  Outcome<Renamed> rename(InodeId source, std::string_view source_name, InodeId target,
                          std::string_view target_name, const Batch& extra = {});
  // Each of two names gets the other's inode, of whatever type, and keeps its place in the listing. kNotDir,
  // kNoEnt, kMLink, kInval (a directory into its own subtree). Two names of one file: nothing happens.
  Outcome<Exchanged> exchange(InodeId first, std::string_view first_name, InodeId second,
                              std::string_view second_name, const Batch& extra = {});
  // kNotDir, kExist, kIsDir, kMLink. An orphan gets no new name: kStale.
  Outcome<Linked> link(InodeId inode, InodeId directory, std::string_view name, const Batch& extra = {});

  // Of the inode as it is given: of one that has no row, which costs no read, what its mode means, and none.
  Outcome<PosixAcl> access_acl(const Inode& inode) override;
  Outcome<PosixAcl> default_acl(const Inode& inode);

  // At most `limit` entries behind `cookie` (0: from the start), without "." and "..". A cookie names a place
  // forever: it survives changes and restarts. kNotDir, kBadCookie (1 and 2: reserved).
  Outcome<DirectoryPage> read_directory(InodeId directory, uint64_t cookie, size_t limit);
  // cookieverf4: constant while the directory lives.
  static ExclusiveVerifier cookie_verifier(const Inode& directory);

  // One batch of the new inode state and `extra` (extents, tail records). kNamespace unless only times move
  // lazily. kInval (nanoseconds), kFBig.
  Outcome<InodePointer> update(InodeId id, const InodeUpdate& what, const Batch& extra = {},
                               CommitKind kind = CommitKind::kNamespace);
  // Data was modified: mtime (now, unless given), ctime and change; lazily durable (kState).
  Outcome<InodePointer> touch(InodeId id, std::optional<WallTime> mtime = std::nullopt);
  // Read accesses, when the caller wants them recorded: atime only, lazily durable; change stays.
  Outcome<InodePointer> touch_atime(InodeId id);

  // All orphans, those of earlier boots too.
  // In order, from this one on; the first `most` of them.
  Outcome<std::vector<InodeId>> orphans(InodeId from = 0, size_t most = SIZE_MAX);
  // Deletes an orphan (kInval if it is none) and its tail record with `extra`, which must erase its extents.
  Outcome<> destroy(InodeId id, const Batch& extra = {});

  // A change value newer than all of `inode`: for LAYOUT and STATE where they compose a batch themselves.
  uint64_t next_change(const Inode& inode) const;

  Sequence last_namespace_sequence() const { return store_.last_namespace_sequence(); }
  // Inodes made from now on have this number or a higher one.
  InodeId next_inode() const { return next_inode_; }
  KeyValueStore& store() { return store_; }
  Snapshots& snapshots() { return snapshots_; }
  Quotas& quotas() { return quotas_; }
  const Quotas& quotas() const { return quotas_; }

  // The format that memory of several files, snapshots and ACLs need here.
  uint64_t shared_format() const { return quotas_.on() ? kFormatQuotas : kFormatShared; }

  // namespace_trees.cc
  // Makes a directory a quota tree, without what is in it yet: place_in_tree() each, then complete_tree(). kNotDir,
  // kNameTooLong (the path, over kSymlinkBytesMax), kExist (it is one), kNotEmpty (it is in one, or one is in it),
  // kMLink (there are as many as there may be), kInval (quotas are off).
  // The same refusals, and nothing else: it brings what begin_tree() reads.
  Outcome<> check_tree_root(InodeId directory);
  Outcome<QuotaTree> begin_tree(InodeId directory, const std::string& path);
  // False, and no effect: it is in another tree. kNoEnt: there is no such tree (any more).
  Outcome<bool> place_in_tree(InodeId inode, TreeNumber tree);
  Outcome<> complete_tree(TreeNumber tree);
  // The directory and what is in it stay, counted in no tree.
  Outcome<> end_tree(TreeNumber tree);

  // STALE: of a snapshot that there is not, or not any more.
  Outcome<> check_visible(InodeId id) const;

 private:
  class Change;

  Namespace(KeyValueStore& store, const Clock& clock, Snapshots snapshots, Quotas quotas, uint64_t boot_count,
            const NamespaceOptions& options);

  Result<> format(const NamespaceOptions& options);
  static Outcome<> check_name(std::string_view name);
  Outcome<InodePointer> get_directory(InodeId id);
  static void place_in_snapshot(Inode& inode, SnapshotNumber snapshot);
  Outcome<InodePointer> snapshot_list(InodeId id);
  Outcome<InodePointer> lookup_snapshot(InodeId list, std::string_view name);
  DirectoryPage read_snapshot_list(InodeId list, uint64_t cookie, size_t limit) const;
  std::optional<std::string> names_down_to(InodeId root, InodeId id);
  Outcome<std::optional<NameEntry>> find(InodeId directory, std::string_view name);
  Outcome<AclEntries> stored_acl(const Inode& inode, AclKind kind);
  Outcome<> check_outside(const Inode& moved, const Inode& target);
  Outcome<> check_replace(const Inode& moved, const Inode& source, const Inode& target, const Inode* victim);
  Outcome<> check_exchange(const Inode& moved, const Inode& source, const Inode& target, const Inode& other);
  Outcome<> check_tree(const Inode& moved, const Inode& source, const Inode& target) const;
  Outcome<> check_apart(InodeId directory);

  KeyValueStore& store_;
  const Clock& clock_;
  Snapshots snapshots_;
  Quotas quotas_;
  const uint64_t boot_count_;
  std::function<bool(InodeId)> in_use_ = [](InodeId) { return true; };
  BoundedCache<InodeId, InodePointer> inodes_;
  NameCache names_;
  // No entry of a directory has a cookie below this. What was deleted before it is walked by nobody: to the
  // engine each deletion is a key to be read over, until it is compacted.
  BoundedCache<InodeId, uint64_t> first_cookies_;
  BoundedCache<InodeId, NameKey> last_names_;  // as names_ got them; may be wrong by now
  InodeId next_inode_ = 0;
  InodeId reserved_inodes_ = 0;
};

}  // namespace pnfsrdma::mds

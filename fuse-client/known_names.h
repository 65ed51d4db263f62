// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "fuse-client/beliefs.h"
#include "fuse-client/inode_table.h"
#include "fuse-client/kept_listings.h"
#include "fuse-client/mount_options.h"

namespace pnfsrdma::fuse_client {

// What can be said of names without the server: which file a name leads to, with its attributes, also where the kernel
// has forgotten all of it; and that there is no such name. Both are believed only where this host decides who may
// search a directory (default_permissions). The kernel has no part in it. Thread-safe; waits for nothing.
class KnownNames {
 public:
  // All outlive it.
  KnownNames(InodeTable& inodes, const Beliefs& beliefs, const MountOptions& options)
      : inodes_(inodes), beliefs_(beliefs), options_(options) {}

  // Bytes for the inodes that the kernel does not know, and for listings, of what the mount may keep.
  static size_t inode_bytes(const MountOptions& options);
  static size_t listing_bytes(const MountOptions& options);

  // Whether names are believed that are there, and that are not.
  bool believes_found() const { return believes_found(options_); }
  bool believes_absent() const { return believes_found() && options_.lookup_cache == LookupCache::kAll; }

  struct Known {
    std::shared_ptr<Inode> inode;
    Inode::Believed attributes;
    SteadyTime named_at;  // the name was its own then
  };
  // The name is known, whether anything is believed of its file or not.
  bool is_known(const Inode& directory, std::string_view name, SteadyTime now) const;
  // None: ask the server.
  std::optional<Known> find(const Inode& directory, std::string_view name, SteadyTime now) const;
  // The same of an entry of a listing that is believed.
  std::optional<Known> listed(const Inode& directory, uint64_t node, SteadyTime now) const;
  bool lacks(const Inode& directory, std::string_view name, SteadyTime now) const;
  // The kernel, or the mount, may show again what was listed then.
  bool keeps_listing(const Inode& directory, SteadyTime now) const;
  bool believes(const WholeListing& listing, const Inode& directory, SteadyTime now) const;
  // Names in it the kernel asks for each time: a recall of its delegation waits for nothing that the kernel knows.
  bool is_delegated(const Inode& directory, SteadyTime now) const {
    return directory.is_directory_delegated(now, beliefs_.lease_end());
  }

  // This is a name of it, as the kernel has been told or a listing has shown. `change`: the directory's change
  // attribute of then, or from a moment before; none: it is not certain.
  void found(Inode& inode, const std::shared_ptr<Inode>& directory, std::string_view name,
             std::optional<uint64_t> change) const;
  // The server knows some handle no more, at this time. It may have been that of a directory on the way, so names of
  // directories that are known so far are asked for again.
  void handle_ended(SteadyTime now) { handle_ended_at_ = now; }

 private:
  static bool believes_found(const MountOptions& options) {
    return options.lookup_cache != LookupCache::kNone && options.default_permissions;
  }
  std::optional<Inode::Believed> believed(const Inode& inode, SteadyTime now) const;

  InodeTable& inodes_;
  const Beliefs& beliefs_;
  const MountOptions& options_;
  std::atomic<SteadyTime> handle_ended_at_{SteadyTime::min()};
};

}  // namespace pnfsrdma::fuse_client

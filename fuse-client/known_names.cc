// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/known_names.h"

namespace pnfsrdma::fuse_client {
namespace {

// The rest is for inodes.
constexpr size_t kListingsShare = 4;

size_t bytes_of(const MountOptions& options) {
  return size_t{options.name_memory_mib} << 20;
}

}  // namespace

size_t KnownNames::listing_bytes(const MountOptions& options) {
  const bool believes_any =
      believes_found(options) && options.attributes != AttributeTimeouts{{}, {}, {}, {}};
  return believes_any ? bytes_of(options) / kListingsShare : 0;
}

size_t KnownNames::inode_bytes(const MountOptions& options) {
  return listing_bytes(options) * (kListingsShare - 1);
}

std::optional<KnownNames::Known> KnownNames::find(const Inode& directory, std::string_view name,
                                                  SteadyTime now) const {
  if (!believes_found()) return std::nullopt;
  const auto named_at = directory.found_name_at(name, now, options_.attributes, beliefs_.lease_end());
  if (!named_at) return std::nullopt;
  std::shared_ptr<Inode> inode = inodes_.find(directory, name);
  if (!inode) return std::nullopt;
  const auto attributes = believed(*inode, now);
  if (!attributes) return std::nullopt;
  return Known{std::move(inode), *attributes, *named_at};
}

std::optional<KnownNames::Known> KnownNames::listed(const Inode& directory, uint64_t node,
                                                    SteadyTime now) const {
  std::shared_ptr<Inode> inode = node != 0 ? inodes_.find(node) : nullptr;
  if (!inode) return std::nullopt;
  const auto attributes = believed(*inode, now);
  const auto named_at = directory.asked_at();
  if (!attributes || !named_at) return std::nullopt;
  return Known{std::move(inode), *attributes, *named_at};
}

// An open has found that the name leads elsewhere, or may have: then the kernel looks again.
std::optional<Inode::Believed> KnownNames::believed(const Inode& inode, SteadyTime now) const {
  if (inode.name_is_lost() || inode.has_old_name(now)) return std::nullopt;
  auto known = beliefs_.believed(inode, now);
  // Its handle may have ended with that one.
  if (known && S_ISDIR(known->attributes.status.st_mode) && known->known_at <= handle_ended_at_.load())
    return std::nullopt;
  return known;
}

bool KnownNames::lacks(const Inode& directory, std::string_view name, SteadyTime now) const {
  return believes_absent() && directory.lacks_name(name, now, options_.attributes, beliefs_.lease_end());
}

bool KnownNames::is_known(const Inode& directory, std::string_view name, SteadyTime now) const {
  return believes_found() && directory.found_name_at(name, now, options_.attributes, beliefs_.lease_end()) &&
         inodes_.find(directory, name) != nullptr;
}

bool KnownNames::keeps_listing(const Inode& directory, SteadyTime now) const {
  return believes_absent() && directory.keeps_listing(now, options_.attributes, beliefs_.lease_end());
}

bool KnownNames::believes(const WholeListing& listing, const Inode& directory, SteadyTime now) const {
  return believes_absent() && directory.is_as_listed(listing.change, listing.asked_at, now,
                                                     options_.attributes, beliefs_.lease_end());
}

void KnownNames::found(Inode& inode, const std::shared_ptr<Inode>& directory, std::string_view name,
                       std::optional<uint64_t> change) const {
  inodes_.named(inode, directory, name);
  if (change && believes_found()) directory->name_is_found(name, *change);
}

}  // namespace pnfsrdma::fuse_client

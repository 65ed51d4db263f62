// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/mds/meta/key_value.h"
#include "server/mds/ops/exports.h"
#include "server/mds/ops/file_handle.h"
#include "shared/base/clock.h"
#include "shared/base/random.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::mds {

// How long an upgraded server takes the handles its clients have, unless the configuration says otherwise.
inline constexpr std::chrono::days kOldHandlesAccepted{30};

// Filehandles nobody else can make: a handle is good for what was looked up inside its export, and for
// nothing that somebody computes. 32 bytes, big-endian:
//
//   version u16 (2), export u16, key version u32, inode u64, generation u64, MAC u64
//
// The MAC is SipHash-2-4 of the 24 bytes before it, under 128 bits of the export's own, from the CSPRNG, kept
// with the metadata by the export's path (an id of the configuration is a place in a list). It costs 0.02 us
// (libsodium's; OpenSSL's 0.05): one for each PUTFH, GETFH and filehandle attribute.
//
// A directory that becomes an export of its own raises the key version of the export around it: handles
// made before may lead into it, and are stale, but for giving back what is held under them.
//
// Version 1 (20 bytes: version, export, inode, generation) could be made by anybody. A store that an older
// program has used takes it until a day for each export. Control loop only.
class HandleKeys {
 public:
  // Loads the keys of `exports` and of the pseudo file system, makes those that are missing, forgets those of
  // no export. `served_before`: an older program may have given out handles; then and only then version 1 is
  // accepted where no key is known, for kOldHandlesAccepted. EUCLEAN, EIO.
  static Result<std::unique_ptr<HandleKeys>> open(KeyValueStore& store, Random& random, const Clock& clock,
                                                  const Exports& exports, bool served_before);
  HandleKeys(const HandleKeys&) = delete;
  HandleKeys& operator=(const HandleKeys&) = delete;

  nfs4::FileHandle encode(const ObjectHandle& handle) const;
  struct Decoded {
    ObjectHandle handle;
    bool superseded =
        false;  // of an earlier key version: good for the export's own directory, and for giving back
  };
  // BADHANDLE for bytes this server has not made; STALE for an export that is gone, and for version 1 when
  // its time is over.
  std::expected<Decoded, nfs4::Status> decode(const nfs4::FileHandle& bytes);
  // The same, and it does not count as a use (old_handles()).
  std::expected<Decoded, nfs4::Status> look_at(const nfs4::FileHandle& bytes) const;

  // --- changes of exports at run time ---
  // Puts a key for `added` into the batch, and the next key version of the exports around it that are
  // served (what Exports::around() says). apply() when the batch is committed.
  struct Change;
  std::shared_ptr<Change> prepare_add(Batch& batch, const Export& added, const Export* around);
  std::shared_ptr<Change> prepare_remove(Batch& batch, const Export& removed);
  void apply(const std::shared_ptr<Change>& change);

  // What the administrator sees of version 1: exports that still take it, and how often it was used since the
  // start.
  struct OldHandles {
    std::string path;
    WallTime until;
    uint64_t uses = 0;
  };
  std::vector<OldHandles> old_handles() const;

 private:
  struct Key {
    std::string path;
    std::array<std::byte, 16> secret{};
    uint32_t version = 0;  // raised when older handles must become stale
    std::optional<WallTime> old_until;
    uint64_t old_uses = 0;
  };

  HandleKeys(KeyValueStore& store, Random& random, const Clock& clock)
      : store_(store), random_(random), clock_(clock) {}
  Result<std::map<std::string, Key>> stored() const;
  Key make(const std::string& path);
  static uint64_t mac_of(const Key& key, ByteSpan bytes);

  KeyValueStore& store_;
  Random& random_;
  const Clock& clock_;
  std::map<uint16_t, Key> keys_;  // by export
};

}  // namespace pnfsrdma::mds

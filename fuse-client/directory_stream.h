// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fuse-client/directory_names.h"
#include "fuse-client/kept_listings.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"
#include "shared/nfs4/directory_operations.h"

namespace pnfsrdma::fuse_client {

class Inode;

using ListedEntries = std::vector<ListedEntry>;
// `nodes`: of the entries' inodes, if any are kept.
ListedEntries listed_entries(const nfs4::ReadDirectoryResult& result, const std::vector<uint64_t>& nodes);

// FUSE's offsets of the two entries the server does not give; its own cookies are greater (RFC
// 8881, 18.23.3).
inline constexpr uint64_t kDotOffset = 1;
inline constexpr uint64_t kDotDotOffset = 2;

// A whole listing, if the directory did not change meanwhile and nobody moved in it. A value.
class ListedNames {
 public:
  // `bytes_max`: more than these are not kept of the entries.
  explicit ListedNames(size_t bytes_max = 0) : bytes_max_(bytes_max) {}

  // The next answer: the entries behind `cookie`, the directory's change attribute ahead of it.
  void take(uint64_t cookie, SteadyTime asked_at, std::optional<uint64_t> change, ListedEntries entries,
            bool end);
  // All names, once: behind the last answer. Without names or entries that are too many to be remembered.
  struct Whole {
    std::optional<std::unordered_set<std::string>> names;
    std::optional<ListedEntries> entries;
    uint64_t change = 0;
    SteadyTime asked_at;  // the first answer
  };
  std::optional<Whole> take_whole();

 private:
  void remember(ListedEntries entries);

  size_t bytes_max_;
  size_t bytes_ = 0;
  Whole so_far_;
  uint64_t next_ = 0;
  bool whole_ = false;
  bool broken_ = true;
};

// One open directory: the entries of the last READDIR, so that several FUSE requests are served by one call; or a whole
// listing that was kept, so that none is made.
// Used with its mutex held by one request at a time.
class DirectoryStream {
 public:
  explicit DirectoryStream(std::shared_ptr<Inode> opened = nullptr, size_t kept_bytes_max = 0)
      : directory(std::move(opened)), names(kept_bytes_max) {}

  const std::shared_ptr<Inode> directory;
  Mutex mutex;
  // When the entries were asked for.
  SteadyTime asked_at;
  uint64_t name_changes = 0;
  bool is_learnt = false;  // the inodes know what the entries say
  ListedNames names;

  // Where READDIR goes on for a FUSE offset.
  static uint64_t cookie_of(uint64_t offset) { return offset <= kDotDotOffset ? 0 : offset; }

  // The first entry behind `cookie` that is here; null if it has to be fetched (or, at_end(), does not
  // exist).
  const nfs4::DirectoryEntry* after(uint64_t cookie);
  // No entry follows `cookie`.
  bool at_end(uint64_t cookie) const;
  // From the first entry on again (rewinddir): as the directory is then.
  void rewind() {
    filled_ = false;
    kept_ = nullptr;
  }
  // From the first entry on, until it is rewound.
  void take_kept(std::shared_ptr<const WholeListing> kept) {
    kept_ = std::move(kept);
    verifier_ = kept_->verifier;
    next_ = 0;
  }
  bool has_kept() const { return kept_ != nullptr; }
  // Of those: the first one behind `cookie`; null: there is none. If no entry has this cookie, has_kept() is over.
  const ListedEntry* kept_after(uint64_t cookie);
  // Takes the answer of a READDIR from `cookie` on.
  void take(uint64_t cookie, nfs4::ReadDirectoryResult result);
  // For the next READDIR from `cookie` on: zero with cookie 0, else the server's.
  nfs4::Verifier verifier(uint64_t cookie) const { return cookie == 0 ? nfs4::Verifier{} : verifier_; }

 private:
  std::vector<nfs4::DirectoryEntry> entries_;
  uint64_t first_cookie_ = 0;  // entries_ follow it
  size_t next_ = 0;            // likely asked for next
  bool filled_ = false;
  bool end_ = false;
  std::shared_ptr<const WholeListing> kept_;
  nfs4::Verifier verifier_{};
};

}  // namespace pnfsrdma::fuse_client

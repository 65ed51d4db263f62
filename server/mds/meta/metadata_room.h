// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

// Watches the file system under the metadata, so that the engine never meets its end unprepared: while less
// is left than a reserve, nothing new is made (StoreRoom::full), but what is there is read and removed. Part
// of the reserve is a file beside the store; when even the rest runs out, as when somebody else fills the
// disk, it is deleted and the engine has its bytes to go on with. It is made again when there is room.
// Control loop only; looking is one statvfs(2).
class MetadataRoom {
 public:
  // `path`: the store's directory, which need not exist yet; the one it is in does. Looks at once.
  explicit MetadataRoom(std::string path);
  MetadataRoom(const MetadataRoom&) = delete;
  MetadataRoom& operator=(const MetadataRoom&) = delete;

  void look();
  const StoreRoom& now() const { return room_; }
  // So little is left that it may be gone before the next look.
  bool near_full() const { return room_.total > 0 && room_.free < 4 * reserve_bytes_; }
  // Bytes of the reserve file, and what has to be left beside it: an eighth of the file system, 2 MiB to 128
  // MiB. All zero where the file system does not tell its size.
  uint64_t reserve_bytes() const { return reserve_bytes_; }
  // The engine's memtable and log in proportion to a small file system; no more than these.
  uint64_t at_most(uint64_t bytes, uint64_t share_of_total) const;

 private:
  bool measure();
  void release();
  void make_reserve();

  const std::string parent_;
  const std::string reserve_;
  uint64_t reserve_bytes_ = 0;
  bool reserved_ = false;
  StoreRoom room_;
};

}  // namespace pnfsrdma::mds

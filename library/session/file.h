// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "library/session/locks.h"
#include "shared/base/sync.h"
#include "shared/initiator/file/file_io.h"
#include "shared/initiator/file/open_state.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::library::session {

// One open at the server. It has an open owner of its own, so the OPEN and CLOSE of two opens of a file never
// cross. Guarded by its File.
struct Open {
  uint64_t owner = 0;
  uint32_t share_access = 0;
  initiator::Credential credential;
  nfs4::Stateid stateid;
  bool broken = false;  // the server has taken it back and gives no new one
  std::shared_ptr<Locks> locks;
};

// What the open owner is called at the server.
nfs4::OwnerId owner_id(uint64_t owner);

// A file that this connection has open, with all its opens. Thread-safe. Owned by the FileTable while one is open.
class File final : public initiator::OpenStateSource {
 public:
  explicit File(nfs4::FileHandle file_handle) : handle(std::move(file_handle)) {}

  const nfs4::FileHandle handle;

  std::optional<initiator::OpenState> open_state(bool for_write) override;

  void add(std::shared_ptr<Open> open);
  // True: it was the last one.
  bool remove(const Open& open);
  // Copies, with who they are: for a reclaim.
  std::vector<std::pair<std::shared_ptr<Open>, Open>> opens() const;
  void renewed(Open& open, const nfs4::Stateid& stateid);
  void lost(Open& open);
  Open copy(const Open& open) const;

  // The data path: from the first open on, until the last close.
  std::shared_ptr<initiator::FileIo> data;

 private:
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Open>> opens_;
};

}  // namespace pnfsrdma::library::session

// SPDX-License-Identifier: Apache-2.0
#include "library/session/file.h"

#include <algorithm>
#include <mutex>
#include <string>

#include "shared/nfs4/open_operations.h"

namespace pnfsrdma::library::session {

nfs4::OwnerId owner_id(uint64_t owner) {
  return nfs4::OwnerId(as_bytes("libpnfsrdma-" + std::to_string(owner)));
}

std::optional<initiator::OpenState> File::open_state(bool for_write) {
  const std::lock_guard lock(mutex_);
  const uint32_t wanted = for_write ? nfs4::kShareAccessWrite : nfs4::kShareAccessRead;
  const auto found = std::ranges::find_if(opens_, [&](const std::shared_ptr<Open>& open) {
    return (open->share_access & wanted) != 0 && !open->broken;
  });
  if (found == opens_.end()) return std::nullopt;
  return initiator::OpenState{(*found)->stateid, (*found)->credential};
}

void File::add(std::shared_ptr<Open> open) {
  const std::lock_guard lock(mutex_);
  opens_.push_back(std::move(open));
}

bool File::remove(const Open& open) {
  const std::lock_guard lock(mutex_);
  std::erase_if(opens_, [&](const std::shared_ptr<Open>& each) { return each.get() == &open; });
  return opens_.empty();
}

std::vector<std::pair<std::shared_ptr<Open>, Open>> File::opens() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::shared_ptr<Open>, Open>> copies;
  for (const std::shared_ptr<Open>& open : opens_) copies.emplace_back(open, *open);
  return copies;
}

void File::renewed(Open& open, const nfs4::Stateid& stateid) {
  const std::lock_guard lock(mutex_);
  open.stateid = stateid;
  open.broken = false;
}

void File::lost(Open& open) {
  const std::lock_guard lock(mutex_);
  open.broken = true;
}

Open File::copy(const Open& open) const {
  const std::lock_guard lock(mutex_);
  return open;
}

}  // namespace pnfsrdma::library::session

// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/clone_offers.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <span>

#include "fuse-client/inode.h"

namespace pnfsrdma::fuse_client {

Result<ring::Secret> CloneOffers::enter(const std::shared_ptr<Inode>& file, uid_t user) {
  const std::lock_guard lock(mutex_);
  forget_old();
  const auto of_the_user =
      std::ranges::count_if(offers_, [user](const auto& entry) { return entry.second.user == user; });
  if (offers_.size() >= kOffersMax || static_cast<size_t>(of_the_user) >= kOffersOfAUserMax)
    return fail(ENOSPC, "too many files are offered to be cloned");
  ring::Secret secret;
  random_.fill(std::as_writable_bytes(std::span(secret)));
  offers_[secret] = {file, user, clock_.now() + kLifetime};
  return secret;
}

std::shared_ptr<Inode> CloneOffers::take(const ring::Secret& secret) {
  const std::lock_guard lock(mutex_);
  forget_old();
  const auto found = offers_.extract(secret);
  return found ? found.mapped().file.lock() : nullptr;
}

void CloneOffers::forget_old() {
  std::erase_if(offers_, [now = clock_.now()](const auto& entry) { return entry.second.until <= now; });
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>

#include "shared/base/clock.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/ring/control.h"

namespace pnfsrdma::fuse_client {

class Inode;

// Files that who has them open to read lets be cloned, once, by whoever shows the secret. For a short time: it passes
// from one call of a program to its next. They are not kept for that. Thread-safe.
class CloneOffers {
 public:
  static constexpr std::chrono::seconds kLifetime{10};
  static constexpr size_t kOffersMax = 4096;
  static constexpr size_t kOffersOfAUserMax = 256;

  explicit CloneOffers(const Clock& clock) : clock_(clock) {}

  // ENOSPC: there are too many, of this user or of all.
  Result<ring::Secret> enter(const std::shared_ptr<Inode>& file, uid_t user);
  // Nobody can take it a second time. Null: there is none.
  std::shared_ptr<Inode> take(const ring::Secret& secret);

 private:
  struct Offer {
    std::weak_ptr<Inode> file;
    uid_t user = 0;
    SteadyTime until;
  };
  void forget_old();

  const Clock& clock_;
  SystemRandom random_;
  Mutex mutex_;
  std::map<ring::Secret, Offer> offers_;
};

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>

#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/rdma/registration.h"

namespace pnfsrdma::rdma {

// The protection domain of the software transports: a table of keys of its own. A key of another domain is
// not "refused" here, it does not exist. Thread-safe.
class SoftwareDomain final : public ProtectionDomain {
 public:
  // The live registration with this key, or nullptr.
  std::shared_ptr<Registration> find(uint32_t key) const;

  // Registers under a fresh random key. EINVAL for empty memory, ENOSPC when the domain is full.
  Result<std::shared_ptr<Registration>> add(MutableByteSpan memory, Access access, Flusher* flusher,
                                            Random& random);
  // Takes the key out of the table; whoever found it before still has to pin it.
  void remove(uint32_t key);

 private:
  mutable Mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<Registration>> registrations_;
};

// Region of the software transports: its destructor removes the key, then waits until no thread moves bytes
// of it.
Result<std::unique_ptr<Region>> make_software_region(std::shared_ptr<ProtectionDomain> domain,
                                                     MutableByteSpan memory, Access access, Flusher* flusher,
                                                     Random& random);

}  // namespace pnfsrdma::rdma

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <unordered_map>

#include "shared/base/guarded.h"
#include "shared/base/sync.h"
#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/device.h"

namespace pnfsrdma::rdma::verbs {

// A protection domain of the device. Knows its regions by local key, because an inline work request copies
// its source before any device looks at the key, and its queue pairs, because fencing may have to end them.
// Thread-safe.
class VerbsDomain final : public ProtectionDomain {
 public:
  explicit VerbsDomain(std::shared_ptr<Device> device);

  // The error of ibv_alloc_pd, if it had one: whoever uses the domain reports it.
  Result<ibv_pd*> handle() const;
  const std::shared_ptr<Device>& device() const { return device_; }

  void add_region(uint32_t key, MutableByteSpan memory);
  void remove_region(uint32_t key);
  // Is this slice inside a region of the domain?
  bool covers(const LocalSlice& slice) const;

  void add_queue_pair(QueuePair* queue_pair) { queue_pairs_.lock()->insert(queue_pair); }
  void remove_queue_pair(QueuePair* queue_pair) { queue_pairs_.lock()->erase(queue_pair); }
  void fail_queue_pairs();

 private:
  const std::shared_ptr<Device> device_;
  const ProtectionDomainHandle handle_;
  const int error_;
  mutable SharedMutex mutex_;
  std::unordered_map<uint32_t, MutableByteSpan> regions_;
  Guarded<std::set<QueuePair*>> queue_pairs_;
};

// The domain as this transport's; EINVAL when it is another one's or another device's.
Result<std::shared_ptr<VerbsDomain>> own_domain(std::shared_ptr<ProtectionDomain> domain,
                                                const Device& device);

}  // namespace pnfsrdma::rdma::verbs

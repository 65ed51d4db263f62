// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/domain.h"

#include <cerrno>

#include "shared/base/sync.h"

namespace pnfsrdma::rdma::verbs {

VerbsDomain::VerbsDomain(std::shared_ptr<Device> device)
    : device_(std::move(device)), handle_(ibv_alloc_pd(device_->context())), error_(handle_ ? 0 : errno) {}

Result<ibv_pd*> VerbsDomain::handle() const {
  if (handle_) return handle_.get();
  return fail(error_, "making a protection domain on " + device_->name());
}

void VerbsDomain::add_region(uint32_t key, MutableByteSpan memory) {
  std::unique_lock lock(mutex_);
  regions_[key] = memory;
}

void VerbsDomain::remove_region(uint32_t key) {
  std::unique_lock lock(mutex_);
  regions_.erase(key);
}

bool VerbsDomain::covers(const LocalSlice& slice) const {
  std::shared_lock lock(mutex_);
  const auto found = regions_.find(slice.key);
  if (found == regions_.end()) return false;
  const auto base = reinterpret_cast<uintptr_t>(found->second.data());
  const auto address = reinterpret_cast<uintptr_t>(slice.address);
  if (address < base) return false;
  const size_t offset = address - base;
  return offset <= found->second.size() && slice.length <= found->second.size() - offset;
}

void VerbsDomain::fail_queue_pairs() {
  auto all = queue_pairs_.lock();
  for (QueuePair* queue_pair : *all) queue_pair->fail();
}

Result<std::shared_ptr<VerbsDomain>> own_domain(std::shared_ptr<ProtectionDomain> domain,
                                                const Device& device) {
  auto own = std::dynamic_pointer_cast<VerbsDomain>(std::move(domain));
  if (own == nullptr || own->device()->context() != device.context()) {
    return fail(EINVAL, "the protection domain belongs to another transport");
  }
  TRY(own->handle());
  return own;
}

}  // namespace pnfsrdma::rdma::verbs

// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/software_domain.h"

#include <cerrno>

namespace pnfsrdma::rdma {
namespace {

// Far above any grant budget and far below 2^24 indices, so that finding a free one is quick.
constexpr size_t kRegistrationsMax = 1u << 22;

class SoftwareRegion final : public Region {
 public:
  SoftwareRegion(std::shared_ptr<SoftwareDomain> domain, std::shared_ptr<Registration> registration)
      : domain_(std::move(domain)), registration_(std::move(registration)) {}
  ~SoftwareRegion() override {
    domain_->remove(registration_->key());
    registration_->retire();
  }
  MutableByteSpan memory() const override { return registration_->memory(); }
  uint32_t local_key() const override { return registration_->key(); }
  RemoteSlice remote() const override {
    return {registration_->base(), registration_->memory().size(), registration_->key()};
  }

 private:
  std::shared_ptr<SoftwareDomain> domain_;
  std::shared_ptr<Registration> registration_;
};

}  // namespace

std::shared_ptr<Registration> SoftwareDomain::find(uint32_t key) const {
  std::lock_guard lock(mutex_);
  auto found = registrations_.find(key);
  return found == registrations_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<Registration>> SoftwareDomain::add(MutableByteSpan memory, Access access,
                                                          Flusher* flusher, Random& random) {
  if (memory.empty()) return fail(EINVAL, "a memory region needs at least one byte");
  if (allows(access, Access::kRemoteFlush) && flusher == nullptr) {
    return fail(EOPNOTSUPP, "remote flush was asked for a region that nothing can flush");
  }
  std::lock_guard lock(mutex_);
  if (registrations_.size() >= kRegistrationsMax) {
    return fail(ENOSPC, "this protection domain has the maximum number of memory regions");
  }
  // 24 random bits of index and 8 of key, as STags are built (RFC 5040 leaves it to us). Keys with index 0
  // are kept free: peers use small STags in zero-length messages.
  uint32_t key = random.next_u32();
  while ((key >> 8) == 0 || registrations_.contains(key)) key = random.next_u32();
  auto registration = std::make_shared<Registration>(memory, key, access, flusher);
  registrations_.emplace(key, registration);
  return registration;
}

void SoftwareDomain::remove(uint32_t key) {
  std::lock_guard lock(mutex_);
  registrations_.erase(key);
}

Result<std::unique_ptr<Region>> make_software_region(std::shared_ptr<ProtectionDomain> domain,
                                                     MutableByteSpan memory, Access access, Flusher* flusher,
                                                     Random& random) {
  auto software = std::dynamic_pointer_cast<SoftwareDomain>(std::move(domain));
  if (software == nullptr) return fail(EINVAL, "the protection domain belongs to another transport");
  TRY_ASSIGN(auto registration, software->add(memory, access, flusher, random));
  return std::make_unique<SoftwareRegion>(std::move(software), std::move(registration));
}

}  // namespace pnfsrdma::rdma

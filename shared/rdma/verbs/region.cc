// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/region.h"

#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::rdma::verbs {
namespace {

constexpr int kDeregisterAttempts = 100;
constexpr Milliseconds kDeregisterPause{20};

std::string locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return std::to_string(limit.rlim_cur / 1024) + " KiB";
}

Error register_error(int number, size_t size, Access access, const std::string& device) {
  const std::string what = "registering " + std::to_string(size) + " bytes on " + device;
  switch (number) {
    case ENOMEM:
      return {
          number,
          what + ": RLIMIT_MEMLOCK is " + locked_memory_limit() +
              "; raise it (ulimit -l unlimited, LimitMEMLOCK=infinity), or the device's regions are used up"};
    case EOPNOTSUPP:
    case EFAULT:
      return {EOPNOTSUPP, what +
                              ": this mapping cannot be pinned for RDMA (files of ext4 and xfs, DAX or not, "
                              "cannot); use device DAX, tmpfs or hugetlbfs"};
    case EINVAL:
      if (allows(access, Access::kRemoteFlush)) {
        return {EOPNOTSUPP, what + " with persistent flush: the memory is not persistent memory"};
      }
      return {number, what};
    case EPERM:
    case EACCES:
      return {number, what + ": no permission (/dev/infiniband/uverbs*)"};
    default:
      return {number, what};
  }
}

Result<unsigned> access_flags(Access access, const Device& device) {
  unsigned flags = 0;
  if (allows(access, Access::kRemoteRead)) flags |= IBV_ACCESS_REMOTE_READ;
  // Verbs wants the local right beside the remote one.
  if (allows(access, Access::kRemoteWrite)) flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
  if (allows(access, Access::kLocalWrite)) {
    flags |= IBV_ACCESS_LOCAL_WRITE;
    // The sink of an iWARP READ is written by the peer's tagged message (RFC 5040, 5.2.2).
    if (device.limits().iwarp) flags |= IBV_ACCESS_REMOTE_WRITE;
  }
  if (allows(access, Access::kRemoteFlush)) {
#ifdef PNFSRDMA_VERBS_HAVE_FLUSH
    if (!device.limits().native_flush) return fail(EOPNOTSUPP, device.name() + " has no native flush");
    flags |= IBV_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_FLUSH_GLOBAL;
#else
    return fail(EOPNOTSUPP, "built with an rdma-core that has no native flush");
#endif
  }
  return flags;
}

class VerbsRegion final : public Region {
 public:
  VerbsRegion(std::shared_ptr<VerbsDomain> domain, MutableByteSpan memory, ibv_mr* handle)
      : domain_(std::move(domain)), memory_(memory), handle_(handle) {
    domain_->add_region(handle_->lkey, memory_);
  }
  ~VerbsRegion() override;

  MutableByteSpan memory() const override { return memory_; }
  uint32_t local_key() const override { return handle_->lkey; }
  RemoteSlice remote() const override {
    return {reinterpret_cast<uintptr_t>(memory_.data()), memory_.size(), handle_->rkey};
  }

 private:
  const std::shared_ptr<VerbsDomain> domain_;
  const MutableByteSpan memory_;
  ibv_mr* const handle_;
};

VerbsRegion::~VerbsRegion() {
  domain_->remove_region(handle_->lkey);
  for (int attempt = 0; attempt < kDeregisterAttempts; ++attempt) {
    const int code = ibv_dereg_mr(handle_);
    if (code == 0 || code == EIO || code == ENODEV) return;  // the device has gone: so have its rights
    if (attempt == 0) {
      log_error("verbs", "deregister-refused device={} errno={} the connections of this client are ended",
                domain_->device()->name(), code);
      domain_->fail_queue_pairs();
    }
    sleep_for(kDeregisterPause);
  }
  log_error("verbs", "deregister-refused device={} giving up: only the end of this process ends the access",
            domain_->device()->name());
  std::abort();
}

}  // namespace

Result<std::unique_ptr<Region>> register_region(std::shared_ptr<VerbsDomain> domain, MutableByteSpan memory,
                                                Access access) {
  if (memory.empty()) return fail(EINVAL, "a region of no bytes");
  const Device& device = *domain->device();
  TRY_ASSIGN(const unsigned flags, access_flags(access, device));
  TRY_ASSIGN(ibv_pd * pd, domain->handle());
  if (memory.size() > device.limits().region_size_max) {
    return fail(EINVAL, "a region of " + std::to_string(memory.size()) + " bytes is more than " +
                            device.name() + " takes");
  }
  ibv_mr* handle = ibv_reg_mr(pd, memory.data(), memory.size(), flags);
  if (handle == nullptr) return std::unexpected(register_error(errno, memory.size(), access, device.name()));
  return std::make_unique<VerbsRegion>(std::move(domain), memory, handle);
}

}  // namespace pnfsrdma::rdma::verbs

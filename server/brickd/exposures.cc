// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/exposures.h"

#include <mutex>
#include <utility>

namespace pnfsrdma::brick {

// Ends when nobody uses it any more, in either way.
class Exposures::UsedRegion final : public rdma::Region {
 public:
  UsedRegion(std::unique_ptr<rdma::Region> region, std::shared_ptr<Mutex> used)
      : region_(std::move(region)), used_(std::move(used)) {}
  ~UsedRegion() override {
    region_.reset();
    const std::lock_guard last(*used_);
  }
  MutableByteSpan memory() const override { return region_->memory(); }
  uint32_t local_key() const override { return region_->local_key(); }
  rdma::RemoteSlice remote() const override { return region_->remote(); }

 private:
  std::unique_ptr<rdma::Region> region_;
  const std::shared_ptr<Mutex> used_;
};

void Exposures::add(uint64_t grant, std::unique_ptr<rdma::Region> region, bool writable) {
  auto used = std::make_shared<Mutex>();
  auto exposed = std::make_unique<UsedRegion>(std::move(region), used);
  regions_.lock()->insert_or_assign(grant, Exposed{std::move(exposed), std::move(used), writable});
}

// Whoever has taken the region out destroys it behind this, or finds it in use.
std::optional<Exposures::Use> Exposures::use(uint64_t grant) {
  auto regions = regions_.lock();
  const auto found = regions->find(grant);
  if (found == regions->end()) return std::nullopt;
  Use use;
  use.memory = found->second.region->memory();
  use.writable = found->second.writable;
  use.mutex_ = found->second.used;
  use.lock_ = std::unique_lock(*use.mutex_);
  return use;
}

std::unique_ptr<rdma::Region> Exposures::take(uint64_t grant) {
  auto regions = regions_.lock();
  auto node = regions->extract(grant);
  return node ? std::move(node.mapped().region) : nullptr;
}

Regions Exposures::take_all() {
  std::map<uint64_t, Exposed> all;
  std::swap(all, *regions_.lock());
  Regions regions;
  for (auto& [grant, exposed] : all) regions.push_back(std::move(exposed.region));
  return regions;
}

size_t Exposures::size() {
  return regions_.lock()->size();
}

std::optional<rdma::RemoteSlice> Exposures::handle(uint64_t grant) {
  auto regions = regions_.lock();
  const auto found = regions->find(grant);
  if (found == regions->end()) return std::nullopt;
  return found->second.region->remote();
}

std::optional<MutableByteSpan> Exposures::memory(uint64_t grant) {
  auto regions = regions_.lock();
  const auto found = regions->find(grant);
  if (found == regions->end()) return std::nullopt;
  return found->second.region->memory();
}

std::vector<HelloGrant> Exposures::all() {
  std::vector<HelloGrant> grants;
  auto regions = regions_.lock();
  grants.reserve(regions->size());
  for (const auto& [grant, exposed] : *regions) {
    const rdma::RemoteSlice remote = exposed.region->remote();
    grants.push_back({grant, remote.key, remote.address});
  }
  return grants;
}

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/exposures.h"

#include <utility>

namespace pnfsrdma::brick {

void Exposures::add(uint64_t grant, std::unique_ptr<rdma::Region> region) {
  regions_.lock()->insert_or_assign(grant, std::move(region));
}

std::unique_ptr<rdma::Region> Exposures::take(uint64_t grant) {
  auto regions = regions_.lock();
  auto node = regions->extract(grant);
  return node ? std::move(node.mapped()) : nullptr;
}

Regions Exposures::take_all() {
  std::map<uint64_t, std::unique_ptr<rdma::Region>> all;
  std::swap(all, *regions_.lock());
  Regions regions;
  for (auto& [grant, region] : all) regions.push_back(std::move(region));
  return regions;
}

size_t Exposures::size() {
  return regions_.lock()->size();
}

std::optional<rdma::RemoteSlice> Exposures::handle(uint64_t grant) {
  auto regions = regions_.lock();
  const auto found = regions->find(grant);
  if (found == regions->end()) return std::nullopt;
  return found->second->remote();
}

std::optional<MutableByteSpan> Exposures::memory(uint64_t grant) {
  auto regions = regions_.lock();
  const auto found = regions->find(grant);
  if (found == regions->end()) return std::nullopt;
  return found->second->memory();
}

std::vector<HelloGrant> Exposures::all() {
  std::vector<HelloGrant> grants;
  auto regions = regions_.lock();
  grants.reserve(regions->size());
  for (const auto& [grant, region] : *regions) {
    const rdma::RemoteSlice remote = region->remote();
    grants.push_back({grant, remote.key, remote.address});
  }
  return grants;
}

}  // namespace pnfsrdma::brick

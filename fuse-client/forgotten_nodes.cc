// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/forgotten_nodes.h"

namespace pnfsrdma::fuse_client {

void ForgottenNodes::add(uint64_t node, const nfs4::FileHandle& handle) {
  if (order_.size() == kMost) erase(order_.front());
  const auto at = by_handle_.emplace(handle, node).first;
  by_node_[node] = {order_.insert(order_.end(), node), at};
}

std::optional<nfs4::FileHandle> ForgottenNodes::handle_of(uint64_t node) const {
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return std::nullopt;
  return found->second.handle->first;
}

std::optional<uint64_t> ForgottenNodes::take(const nfs4::FileHandle& handle) {
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) return std::nullopt;
  const uint64_t node = found->second;
  erase(node);
  return node;
}

void ForgottenNodes::erase(uint64_t node) {
  const auto found = by_node_.find(node);
  order_.erase(found->second.order);
  by_handle_.erase(found->second.handle);
  by_node_.erase(found);
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/delegations.h"

#include <iterator>
#include <mutex>
#include <utility>

namespace pnfsrdma::fuse_client {

// In one step: whoever finds it in force finds its place, too.
void Delegations::take(const std::shared_ptr<Inode>& inode, const FileDelegation::Grant& grant,
                       uint64_t era) {
  bool is_of_before = false;
  {
    const std::lock_guard lock(mutex_);
    if (!inode->delegated(grant)) return;
    ++counts_.granted;
    if (grant.allows == nfs4::kShareAccessBoth) ++counts_.granted_to_write;
    const auto [place, fresh] = places_.try_emplace(inode.get());
    if (!fresh) order_.erase(place->second);
    place->second = order_.insert(order_.end(), inode);
    is_of_before = era != era_;
  }
  if (is_of_before) end(inode);
  keep(held_max_);
}

uint64_t Delegations::era() const {
  const std::lock_guard lock(mutex_);
  return era_;
}

void Delegations::used(const Inode& inode) {
  const std::lock_guard lock(mutex_);
  ++counts_.opens;
  const auto place = places_.find(&inode);
  if (place != places_.end()) order_.splice(order_.end(), order_, place->second);
}

void Delegations::end(const std::shared_ptr<Inode>& inode, CloseQueue::When when) {
  Order ending;
  {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(inode.get());
    if (place == places_.end()) return;
    ending.splice(ending.end(), order_, place->second);
    places_.erase(place);
  }
  end(std::move(ending), when);
}

void Delegations::lost(Inode& inode) {
  {
    const std::lock_guard lock(mutex_);
    const auto place = places_.find(&inode);
    if (place == places_.end()) return;
    order_.erase(place->second);
    places_.erase(place);
  }
  inode.drop_delegation();
}

void Delegations::end_all() {
  {
    const std::lock_guard lock(mutex_);
    ++era_;
  }
  keep(0);
}

std::vector<std::shared_ptr<Inode>> Delegations::server_lost() {
  std::vector<std::shared_ptr<Inode>> left;
  Order ending;
  {
    const std::lock_guard lock(mutex_);
    ++era_;
    for (auto at = order_.begin(); at != order_.end();) {
      const auto next = std::next(at);
      if ((*at)->locks().are_here() || (*at)->holds_data()) {
        left.push_back(*at);
      } else {
        places_.erase(at->get());
        ending.splice(ending.end(), order_, at);
      }
      at = next;
    }
  }
  end(std::move(ending));
  return left;
}

initiator::CallbackAnswer Delegations::recall(const std::shared_ptr<Inode>& inode,
                                              const nfs4::FileHandle& handle, const nfs4::Stateid& stateid,
                                              bool may_be_new) {
  Inode::Holds holds = inode ? inode->holds_delegation(stateid) : Inode::Holds::kNo;
  if (holds == Inode::Holds::kNo && may_be_new) holds = Inode::Holds::kPerhapsSoon;
  if (holds == Inode::Holds::kPerhapsSoon) {
    // If the server has enough of asking it revokes it, and it is freed by this memory.
    closes_.revoked().remove(stateid);
    closes_.revoked().add(stateid);
    return {nfs4::Status::kBadStateid, {}};
  }
  {
    const std::lock_guard lock(mutex_);
    ++counts_.recalled;
  }
  if (holds == Inode::Holds::kYes) {
    end(inode);
  } else {
    return_unknown(handle, stateid);
  }
  return {};
}

// By an inode of its own, which nobody opens.
void Delegations::return_unknown(const nfs4::FileHandle& handle, const nfs4::Stateid& stateid) {
  const auto file = std::make_shared<Inode>(handle, 0);
  file->delegated({.stateid = stateid});
  file->end_delegation();
  closes_.add(file, CloseQueue::When::kAtOnce);
}

void Delegations::keep(size_t count) {
  Order ending;
  {
    const std::lock_guard lock(mutex_);
    if (order_.size() <= count) return;
    const auto last = std::next(order_.begin(), static_cast<ptrdiff_t>(order_.size() - count));
    ending.splice(ending.end(), order_, order_.begin(), last);
    for (const auto& inode : ending) places_.erase(inode.get());
  }
  end(std::move(ending));
}

void Delegations::end(Order ending, CloseQueue::When when) {
  for (const auto& inode : ending) {
    if (inode->end_delegation()) closes_.add(inode, when);
  }
}

Delegations::Counts Delegations::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.held = order_.size();
  return counts;
}

}  // namespace pnfsrdma::fuse_client

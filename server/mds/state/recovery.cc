// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/recovery.h"

#include <map>
#include <set>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

// Returns the clients whose end has begun.
std::vector<ClientId> keep(StateStore::Loaded loaded, StateStore& store, ClientTable& clients,
                           OpenTable& opens, LockTable& locks, DelegationTable& delegations) {
  for (Client& client : loaded.clients) {
    const ClientId id = client.id;
    if (!clients.find_confirmed(client.owner)) {
      clients.restore(std::move(client));
      continue;
    }
    // Two records of one owner, as earlier versions could leave them (StateStore::keep). Which is the older nobody
    // knows; one of them ends, for good.
    if (const auto marked = store.mark_expiring(id); !marked) store.keep(id);
    loaded.expiring.push_back(id);
  }
  const std::set<ClientId> expiring(loaded.expiring.begin(), loaded.expiring.end());
  for (OpenState& open : loaded.opens) {
    if (clients.find(open.client) || expiring.contains(open.client)) opens.add(std::move(open));
  }
  for (LockState& lock : loaded.locks) {
    if (opens.find(lock.open)) locks.add(std::move(lock));
  }
  for (DelegationState& delegation : loaded.delegations) {
    if (clients.find(delegation.client) || expiring.contains(delegation.client))
      delegations.add(std::move(delegation));
  }
  log_info("mds", "state-kept clients={} opens={} locks={} delegations={} expiring={}", clients.size(),
           opens.size(), locks.size(), delegations.size(), expiring.size());
  return std::move(loaded.expiring);
}

void remember_delegations(const StateStore::Loaded& loaded, GracePeriod& grace) {
  std::map<ClientId, const Bytes*> owners;
  for (const Client& client : loaded.clients) owners[client.id] = &client.owner;
  for (const DelegationState& delegation : loaded.delegations) {
    const auto owner = owners.find(delegation.client);
    if (owner != owners.end() && !delegation.revoked)
      grace.remember_delegation(*owner->second, delegation.inode, delegation.kind);
  }
}

}  // namespace

Result<std::vector<ClientId>> recover_state(const BootRecord& boot, StateStore& store, ClientTable& clients,
                                            OpenTable& opens, LockTable& locks, DelegationTable& delegations,
                                            GracePeriod& grace, Milliseconds grace_longest,
                                            std::function<void()> grace_ended) {
  TRY_ASSIGN(StateStore::Loaded loaded, store.load());
  TRY_ASSIGN(const bool in_grace, store.in_grace());
  if (boot.same_host_boot && !in_grace) {
    std::vector<ClientId> expiring = keep(std::move(loaded), store, clients, opens, locks, delegations);
    if (boot.lease_before > clients.lease()) clients.lengthen_leases(boot.lease_before - clients.lease());
    return expiring;
  }
  TRY(store.note_grace());
  TRY(store.forget_opens());
  std::vector<Bytes> owners;
  std::vector<ClientId> old;
  for (const Client& client : loaded.clients) {
    owners.push_back(client.owner);
    old.push_back(client.id);
  }
  remember_delegations(loaded, grace);
  // The records stay until then: another reboot in the middle must find who had not reclaimed yet.
  grace.begin(owners, grace_longest, [&store, old, grace_ended = std::move(grace_ended)] {
    // One that was left could reclaim after the next start what others get now.
    if (!store.end_grace(old)) return false;
    if (grace_ended) grace_ended();
    return true;
  });
  return std::vector<ClientId>();
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/recovery.h"

#include <map>
#include <set>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

void keep(StateStore::Loaded loaded, ClientTable& clients, OpenTable& opens, LockTable& locks,
          DelegationTable& delegations) {
  for (Client& client : loaded.clients) {
    // Two records of one owner: the daemon died while the older one was being taken apart. The newer has the
    // name.
    if (!clients.find_confirmed(client.owner)) clients.restore(std::move(client));
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
}

void remember_delegations(const StateStore::Loaded& loaded, GracePeriod& grace) {
  std::map<ClientId, const Bytes*> owners;
  for (const Client& client : loaded.clients) owners[client.id] = &client.owner;
  for (const DelegationState& delegation : loaded.delegations) {
    const auto owner = owners.find(delegation.client);
    if (owner != owners.end() && !delegation.revoked)
      grace.remember_delegation(*owner->second, delegation.inode);
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
    std::vector<ClientId> expiring = loaded.expiring;
    keep(std::move(loaded), clients, opens, locks, delegations);
    if (boot.lease_before > clients.lease()) clients.lengthen_leases(boot.lease_before - clients.lease());
    return expiring;
  }
  TRY(store.note_grace(true));
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
    for (const ClientId client : old) {
      if (!store.forget_client(client)) return false;
    }
    if (!store.note_grace(false)) return false;
    if (grace_ended) grace_ended();
    return true;
  });
  return std::vector<ClientId>();
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/client_table.h"

#include "shared/base/check.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

constexpr Milliseconds kRefusalLoggedEvery{60'000};

}  // namespace

ClientTable::ClientTable(const Clock& clock, Random& random, Milliseconds lease)
    : clock_(clock), random_(random), lease_(lease) {}

std::shared_ptr<Client> ClientTable::find(ClientId id) const {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second;
}

std::shared_ptr<Client> ClientTable::find_in(const ByOwner& index, ByteSpan owner) const {
  const auto found = index.find(as_text(owner));
  return found == index.end() ? nullptr : find(found->second);
}

std::shared_ptr<Client> ClientTable::find_confirmed(ByteSpan owner) const {
  return find_in(confirmed_, owner);
}
std::shared_ptr<Client> ClientTable::find_unconfirmed(ByteSpan owner) const {
  return find_in(unconfirmed_, owner);
}

std::shared_ptr<Client> ClientTable::add(ByteSpan owner, const xdr::FixedOpaque<8>& verifier,
                                         const Principal& principal, const std::string& address) {
  Client client;
  // Random: an id of an earlier run, even of one whose records are lost, is not met again.
  do client.id = random_.next_u64();
  while (client.id == 0 || clients_.contains(client.id));
  client.owner.assign(owner.begin(), owner.end());
  client.verifier = verifier;
  client.principal = principal;
  client.address = address;
  client.unconfirmed_as = next_unconfirmed_++;
  return restore(std::move(client));
}

std::shared_ptr<Client> ClientTable::restore(Client client) {
  auto shared = std::make_shared<Client>(std::move(client));
  auto& index = shared->confirmed ? confirmed_ : unconfirmed_;
  const bool fresh = index.emplace(as_text(shared->owner), shared->id).second;
  CHECK(fresh);
  renew(*shared);
  count(*shared);
  clients_.emplace(shared->id, shared);
  return shared;
}

void ClientTable::confirm(Client& client) {
  CHECK(!client.confirmed);
  unconfirmed_.erase(std::string(as_text(client.owner)));
  const bool fresh = confirmed_.emplace(as_text(client.owner), client.id).second;
  CHECK(fresh);
  uncount(client);
  client.confirmed = true;
  count(client);
}

void ClientTable::remove(Client& client) {
  client.gone = true;
  uncount(client);
  (client.confirmed ? confirmed_ : unconfirmed_).erase(std::string(as_text(client.owner)));
  clients_.erase(ClientId(client.id));
}

void ClientTable::move_to(Client& client, const std::string& address) {
  if (client.address == address) return;
  uncount(client);
  client.address = address;
  count(client);
}

void ClientTable::count(const Client& client) {
  if (client.confirmed) {
    ++confirmed_of_[client.address];
  } else {
    unconfirmed_of_[client.address].emplace(client.unconfirmed_as, client.id);
  }
}

void ClientTable::uncount(const Client& client) {
  if (client.confirmed) {
    const auto of = confirmed_of_.find(client.address);
    if (--of->second == 0) confirmed_of_.erase(of);
  } else {
    const auto of = unconfirmed_of_.find(client.address);
    of->second.erase(client.unconfirmed_as);
    if (of->second.empty()) unconfirmed_of_.erase(of);
  }
}

size_t ClientTable::confirmed_of(const std::string& address) const {
  const auto found = confirmed_of_.find(address);
  return found == confirmed_of_.end() ? 0 : found->second;
}

void ClientTable::note_refused(const std::string& address) {
  const SteadyTime now = clock_.now();
  if (logged_ != SteadyTime() && now - logged_ < kRefusalLoggedEvery) return;
  logged_ = now;
  log_warning("mds",
              "client-refused address={} of_address={} clients={} what=\"there are as many as there may be\"",
              address, confirmed_of(address), confirmed());
}

std::shared_ptr<Client> ClientTable::oldest_unconfirmed() const {
  std::shared_ptr<Client> oldest;
  size_t most = 0;
  for (const auto& [address, clients] : unconfirmed_of_) {
    if (clients.size() <= most) continue;
    for (const auto& [number, id] : clients) {
      auto client = find(id);
      if (client->creating_session) continue;
      oldest = std::move(client);
      most = clients.size();
      break;
    }
  }
  return oldest;
}

void ClientTable::renew(Client& client) const {
  client.lease_end = clock_.now() + lease_;
}

void ClientTable::lengthen_leases(Milliseconds by) {
  for (const auto& [id, client] : clients_) client->lease_end += by;
}

std::vector<std::shared_ptr<Client>> ClientTable::expired(size_t most) const {
  std::vector<std::shared_ptr<Client>> expired;
  const SteadyTime now = clock_.now();
  for (const auto& [id, client] : clients_) {
    if (expired.size() == most) break;
    if (client->lease_end < now && client->running_compounds == 0 && !client->creating_session) {
      expired.push_back(client);
    }
  }
  return expired;
}

}  // namespace pnfsrdma::mds

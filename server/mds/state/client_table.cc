// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/client_table.h"

#include "shared/base/check.h"

namespace pnfsrdma::mds {

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
                                         const Principal& principal) {
  Client client;
  // Random: an id of an earlier run, even of one whose records are lost, is not met again.
  do client.id = random_.next_u64();
  while (client.id == 0 || clients_.contains(client.id));
  client.owner.assign(owner.begin(), owner.end());
  client.verifier = verifier;
  client.principal = principal;
  return restore(std::move(client));
}

std::shared_ptr<Client> ClientTable::restore(Client client) {
  auto shared = std::make_shared<Client>(std::move(client));
  auto& index = shared->confirmed ? confirmed_ : unconfirmed_;
  const bool fresh = index.emplace(as_text(shared->owner), shared->id).second;
  CHECK(fresh);
  renew(*shared);
  clients_.emplace(shared->id, shared);
  return shared;
}

void ClientTable::confirm(Client& client) {
  CHECK(!client.confirmed);
  unconfirmed_.erase(std::string(as_text(client.owner)));
  const bool fresh = confirmed_.emplace(as_text(client.owner), client.id).second;
  CHECK(fresh);
  client.confirmed = true;
}

void ClientTable::remove(Client& client) {
  client.gone = true;
  (client.confirmed ? confirmed_ : unconfirmed_).erase(std::string(as_text(client.owner)));
  clients_.erase(ClientId(client.id));
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

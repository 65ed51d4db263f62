// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/mds/state/client.h"
#include "shared/base/random.h"

namespace pnfsrdma::mds {

// All client records. Of one co_ownerid there is at most one confirmed and one unconfirmed record (RFC
// 8881, 18.35.4). Control loop only. It knows nothing of sessions, opens or the store: lease_keeper.h takes a
// client apart.
//
// Anybody can ask for an unconfirmed record, in one call: those have places of their own, and the newest takes that of
// the oldest of the address that has most. Confirmed ones are counted by address, so that one address alone
// cannot keep others out; which one a client of an earlier run has is known from its next session on.
class ClientTable {
 public:
  ClientTable(const Clock& clock, Random& random, Milliseconds lease);
  ClientTable(const ClientTable&) = delete;
  ClientTable& operator=(const ClientTable&) = delete;

  std::shared_ptr<Client> find(ClientId id) const;
  std::shared_ptr<Client> find_confirmed(ByteSpan owner) const;
  std::shared_ptr<Client> find_unconfirmed(ByteSpan owner) const;

  // A new unconfirmed record with an id never used before. The owner has no unconfirmed one.
  std::shared_ptr<Client> add(ByteSpan owner, const xdr::FixedOpaque<8>& verifier, const Principal& principal,
                              const std::string& address = {});
  // One that the store remembered.
  std::shared_ptr<Client> restore(Client client);
  // The owner's confirmed record, if any, has been removed.
  void confirm(Client& client);
  // Whoever still shares it sees `gone`.
  void remove(Client& client);
  // It has come from there.
  void move_to(Client& client, const std::string& address);

  size_t unconfirmed() const { return unconfirmed_.size(); }
  size_t confirmed() const { return confirmed_.size(); }
  size_t confirmed_of(const std::string& address) const;
  // A client of this address found no place among the confirmed ones: the log says so, once in a while.
  void note_refused(const std::string& address);
  // The one whose place a new one may take. Null: for all of them a CREATE_SESSION is under way.
  std::shared_ptr<Client> oldest_unconfirmed() const;

  void renew(Client& client) const;
  // Nobody could be heard for this time, and that is nobody's fault.
  void lengthen_leases(Milliseconds by);
  // Whose lease has run out and that nothing runs for; `most` of them.
  std::vector<std::shared_ptr<Client>> expired(size_t most) const;
  Milliseconds lease() const { return lease_; }
  size_t size() const { return clients_.size(); }
  const std::unordered_map<ClientId, std::shared_ptr<Client>>& all() const { return clients_; }

 private:
  using ByOwner = std::map<std::string, ClientId, std::less<>>;
  std::shared_ptr<Client> find_in(const ByOwner& index, ByteSpan owner) const;
  void count(const Client& client);
  void uncount(const Client& client);

  const Clock& clock_;
  Random& random_;
  const Milliseconds lease_;
  std::unordered_map<ClientId, std::shared_ptr<Client>> clients_;
  ByOwner confirmed_;
  ByOwner unconfirmed_;
  std::unordered_map<std::string, size_t> confirmed_of_;  // by address
  std::unordered_map<std::string, std::map<uint64_t, ClientId>>
      unconfirmed_of_;  // by address, the oldest first
  uint64_t next_unconfirmed_ = 1;
  SteadyTime logged_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "server/mds/state/session.h"
#include "shared/base/random.h"

namespace pnfsrdma::mds {

// All sessions. They do not survive the daemon (but see DoneRecord): a client that meets BADSESSION makes a
// new one. Control loop only.
class SessionTable {
 public:
  explicit SessionTable(Random& random) : random_(random) {}
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  std::shared_ptr<Session> create(const std::shared_ptr<Client>& client, const nfs4::ChannelAttributes& fore,
                                  BackChannel back);
  std::shared_ptr<Session> find(const SessionId& id) const;
  // Whoever still shares it sees destroyed().
  void destroy(Session& session);
  void destroy_all_of(Client& client);
  // Told of each session that ends, before it does.
  void set_on_destroy(std::function<void(const Session&)> hook) { on_destroy_ = std::move(hook); }
  size_t size() const { return sessions_.size(); }

  struct Hash {
    size_t operator()(const SessionId& id) const;
  };
  using Sessions = std::unordered_map<SessionId, std::shared_ptr<Session>, Hash>;
  const Sessions& all() const { return sessions_; }

 private:
  Random& random_;
  Sessions sessions_;
  std::function<void(const Session&)> on_destroy_;
};

}  // namespace pnfsrdma::mds

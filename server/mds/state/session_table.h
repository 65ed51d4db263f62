// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "server/mds/state/session.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"
#include "shared/rpc/memory_budget.h"

namespace pnfsrdma::mds {

// All sessions. They do not survive the daemon (but see DoneRecord): a client that meets BADSESSION makes a
// new one.
//
// A reply cache is what makes a request happen exactly once (RFC 8881, 2.10.6.1): its memory, slots times
// ca_maxresponsesize_cached, is reserved when the session is made, and comes back only with slots that the
// client has shown not to use any more. When it becomes short new sessions get fewer slots and the targets of
// large ones are lowered; when there is plenty they rise again. Control loop only.
class SessionTable {
 public:
  // `memory` is where reply caches are reserved; null: nobody counts.
  explicit SessionTable(Random& random, rpc::MemoryBudget* memory = nullptr)
      : random_(random), memory_(memory) {}
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;

  // Balances the slots of all sessions every second, as long as the loop runs.
  void start(EventLoop& loop);
  void balance();

  // Slots there is memory for, at most `asked`, with answers of `cached_bytes`. 0: none, now.
  uint32_t affordable_slots(uint32_t asked, uint32_t cached_bytes) const;
  // Those of `fore` are affordable.
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
  rpc::MemoryBudget* const memory_;
  Sessions sessions_;
  std::function<void(const Session&)> on_destroy_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/lease_keeper.h"

#include <set>

#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

// A loop that comes this late was kept from running; less is everyday business.
constexpr Milliseconds kStall(1000);

}  // namespace

LeaseKeeper::LeaseKeeper(ClientTable& clients, SessionTable& sessions, OpenTable& opens, LockTable& locks,
                         StateStore& store, LayoutConflicts& layouts, Counters& counters)
    : clients_(clients),
      sessions_(sessions),
      opens_(opens),
      locks_(locks),
      store_(store),
      layouts_(layouts),
      counters_(counters) {}

void LeaseKeeper::retire(const std::shared_ptr<Client>& client, std::function<void()> done) {
  clients_.remove(*client);
  sessions_.destroy_all_of(*client);
  // Fence first: as long as a brick lets the client in, nobody may be told that its share reservations are
  // gone.
  layouts_.on_client_gone(client->id, [this, client, done = std::move(done)] {
    drop(*client);
    done();
  });
}

void LeaseKeeper::retire_within(const std::shared_ptr<Client>& client, Milliseconds patience,
                                std::function<void()> done, std::function<void()> too_long) {
  const auto timer = std::make_shared<EventLoop::TimerId>(0);
  if (loop_ != nullptr) *timer = loop_->after(patience, std::move(too_long));
  retire(client, [this, timer, done = std::move(done)] {
    if (loop_ != nullptr) loop_->cancel(*timer);
    done();
  });
}

void LeaseKeeper::drop(Client& client) {
  const std::vector<OpenState*> opens = opens_.opens_of_client(client.id);
  const std::vector<LockState*> locks = locks_.locks_of_client(client.id);
  // A record that cannot be erased now comes back at a restart and expires again: harmless.
  if (client.confirmed) {
    if (const auto erased = store_.erase(client, opens, locks); !erased) {
      log_warning("mds", "client-record-kept client={:#x} status={}", client.id,
                  nfs4::to_string(erased.error()));
    }
  }
  for (LockState* lock : locks) locks_.remove(*lock);
  std::set<uint64_t> inodes;
  for (OpenState* open : opens) {
    inodes.insert(open->inode);
    opens_.remove(*open);
  }
  for (const uint64_t inode : inodes) {
    if (!opens_.is_open(inode)) layouts_.on_last_close(inode);
  }
}

void LeaseKeeper::expire_due() {
  for (const auto& client : clients_.expired()) {
    if (client->confirmed) {
      ++counters_.clients_expired;
      log_info("mds", "lease-expired client={:#x} opens={} locks={}", client->id,
               opens_.opens_of_client(client->id).size(), locks_.locks_of_client(client->id).size());
    }
    retire(client, [] {});
  }
}

void LeaseKeeper::start(EventLoop& loop, Milliseconds every) {
  loop_ = &loop;
  loop.after(every, [this, &loop, every, due = loop.now() + every] {
    {
      const EventLoop::Step step(loop, "lease-expiry");
      look(std::chrono::duration_cast<Milliseconds>(loop.now() - due));
    }
    start(loop, every);
  });
}

void LeaseKeeper::look(Milliseconds late) {
  if (late >= kStall) {
    log_warning("mds", "stalled milliseconds={} leases are longer by that", late.count());
    clients_.lengthen_leases(late);
  }
  expire_due();
}

}  // namespace pnfsrdma::mds

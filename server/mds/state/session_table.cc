// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/session_table.h"

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kBalanceEvery{1000};
// No session takes more than this share of what is left: the last ones get few slots, not none.
constexpr size_t kShareOfRest = 16;

}  // namespace

size_t SessionTable::Hash::operator()(const SessionId& id) const {
  size_t hash = 0;
  std::memcpy(&hash, id.data(), sizeof(hash));  // random already
  return hash;
}

uint32_t SessionTable::affordable_slots(uint32_t asked, uint32_t cached_bytes) const {
  if (memory_ == nullptr) return asked;
  const size_t bytes = memory_->reservable();
  const size_t rest = (bytes - std::min(bytes, kSessionBytes)) / reply_slot_bytes(cached_bytes);
  return static_cast<uint32_t>(std::min<size_t>({asked, rest, std::max<size_t>(rest / kShareOfRest, 1)}));
}

void SessionTable::start(EventLoop& loop) {
  loop.after(kBalanceEvery, [this, &loop] {
    {
      const EventLoop::Step step(loop, "session-balance");
      balance();
    }
    start(loop);
  });
}

// Every session may have as much as any other, so that a quarter stays for new ones.
void SessionTable::balance() {
  if (memory_ == nullptr || sessions_.empty()) return;
  const size_t all = memory_->reserved() + memory_->reservable();
  const bool is_short = memory_->reservable() < all / 4;
  const bool is_plenty = memory_->reservable() > all / 2;
  if (!is_short && !is_plenty) return;
  const size_t share = all / 4 * 3 / sessions_.size();
  for (const auto& [id, session] : sessions_) session->limit_reply_cache(share, is_plenty);
}

std::shared_ptr<Session> SessionTable::create(const std::shared_ptr<Client>& client,
                                              const nfs4::ChannelAttributes& fore, BackChannel back) {
  SessionId id;
  // Sixteen random bytes: nobody guesses another client's session.
  random_.fill(id);
  auto session = std::make_shared<Session>(id, client, fore, std::move(back));
  CHECK(session->reserve(memory_));
  client->sessions.push_back(session.get());
  sessions_.emplace(id, session);
  return session;
}

std::shared_ptr<Session> SessionTable::find(const SessionId& id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

void SessionTable::destroy(Session& session) {
  if (on_destroy_) on_destroy_(session);
  std::erase(session.client().sessions, &session);
  session.set_destroyed();
  sessions_.erase(SessionId(session.id()));
}

void SessionTable::destroy_all_of(Client& client) {
  while (!client.sessions.empty()) destroy(*client.sessions.back());
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/session_table.h"

#include <cstring>

namespace pnfsrdma::mds {

size_t SessionTable::Hash::operator()(const SessionId& id) const {
  size_t hash = 0;
  std::memcpy(&hash, id.data(), sizeof(hash));  // random already
  return hash;
}

std::shared_ptr<Session> SessionTable::create(const std::shared_ptr<Client>& client,
                                              const nfs4::ChannelAttributes& fore, BackChannel back) {
  SessionId id;
  // Sixteen random bytes: nobody guesses another client's session.
  random_.fill(id);
  auto session = std::make_shared<Session>(id, client, fore, std::move(back));
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

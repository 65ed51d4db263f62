// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include "server/mds/bricks/brick_device.h"
#include "server/mds/meta/records.h"
#include "shared/base/join.h"

// The half of BrickDevice that opens, closes and takes over sessions.
namespace pnfsrdma::mds {

namespace {

// By brick and client.
std::string ticket_key(BrickNumber brick, uint64_t client) {
  std::byte key[12];
  store_big_endian(key, brick);
  store_big_endian(key + 4, client);
  return std::string(as_text(key));
}

}  // namespace

Result<std::map<BrickNumber, BrickDevice::Tickets>> BrickDevice::tickets_on_record(
    KeyValueStore& store, const std::function<bool(BrickNumber, uint64_t client)>& keep) {
  std::map<BrickNumber, Tickets> tickets;
  Batch strange;
  TRY(Records(store).scan(RecordKind::kTicket, [&](std::string_view key, std::string_view value) {
    Ticket ticket;
    const bool readable = key.size() == 12 && value.size() == ticket.size();
    const BrickNumber brick = readable ? load_big_endian<BrickNumber>(as_bytes(key).data()) : kNoBrick;
    const uint64_t client = readable ? load_big_endian<uint64_t>(as_bytes(key).data() + 4) : 0;
    if (readable && keep(brick, client)) {
      std::ranges::copy(as_bytes(value), ticket.begin());
      tickets[brick][client] = ticket;
    } else {
      Records::erase(strange, RecordKind::kTicket, key);
    }
    return true;
  }));
  if (!strange.empty()) TRY(store.commit(strange, CommitKind::kState));
  return tickets;
}

void BrickDevice::keep_sessions(const Tickets& tickets) {
  adoptable_ = true;
  for (const auto& [client, ticket] : tickets) sessions_[client] = {.ticket = ticket};
}

void BrickDevice::open_session(uint64_t client, Done<Ticket> done) {
  if (!ready()) return refuse(std::move(done), brick::Status::kTryLater);
  const auto [at, is_new] = sessions_.try_emplace(client);
  // The ticket outlives the brick's process and ours, not the client's lease: a client reconnects with what it
  // knows.
  if (is_new) {
    random_.fill(at->second.ticket);
    if (!note_ticket(client, at->second.ticket)) {
      sessions_.erase(at);
      return refuse(std::move(done), brick::Status::kTryLater);
    }
  }
  const Ticket ticket = at->second.ticket;
  if (at->second.open) return done(ticket);
  control_.open_session(
      {epoch_, client, ticket},
      guard<brick::StatusResult>([this, client, ticket, done](Answer<brick::StatusResult> opened) {
        if (!opened) {
          if (opened.error() == brick::Status::kLimit) refused_by_limit(client);
          return done(std::unexpected(opened.error()));
        }
        const auto session = sessions_.find(client);
        // Expelled while it was being opened: close_session() is behind us in the brick's queue.
        if (session == sessions_.end()) return done(std::unexpected(brick::Status::kTryLater));
        session->second.open = true;
        done(ticket);
      }));
}

bool BrickDevice::note_ticket(uint64_t client, const Ticket& ticket) {
  if (client == kOwnBrickClient) return true;  // of this process only
  return Records(store_).put(RecordKind::kTicket, ticket_key(number_, client), as_text(ticket)).has_value();
}

void BrickDevice::forget_ticket(uint64_t client) {
  // What cannot be erased now goes at the next start, which does not know the client.
  if (client != kOwnBrickClient)
    static_cast<void>(Records(store_).erase(RecordKind::kTicket, ticket_key(number_, client)));
}

void BrickDevice::close_session(uint64_t client, std::function<void()> done) {
  if (sessions_.erase(client) == 0) return done();
  forget_ticket(client);
  // Not usable: all sessions that are not in sessions_ are closed before anything new happens there.
  if (!usable()) return done();
  control_.close_session(
      {epoch_, client},
      guard<brick::StatusResult>([this, round = round_, done](Answer<brick::StatusResult> closed) {
        if (closed || closed.error() == brick::Status::kNotFound || round != round_) return done();
        waiting_for_closing_.push_back(done);
        begin_again("a session could not be closed");
      }));
}

// --- those of before, at the first claim ---

void BrickDevice::settle_sessions() {
  control_.list_sessions(guard<brick::SessionsResult>([this](Answer<brick::SessionsResult> listed) {
    if (!usable()) return;
    if (!listed) return begin_again("its sessions could not be listed");
    settle(listed->sessions);
  }));
}

// Sessions that are kept, one after the other: each may have many grants, which are told page by page.
struct BrickDevice::Adoption {
  std::deque<brick::SessionEntry> left;
  std::vector<brick::Grant> listed;  // so far, of the first of them
  std::function<void()> done;
};

void BrickDevice::settle(const std::vector<brick::SessionEntry>& listed) {
  const Join join([this, current = current()] {
    if (current()) sessions_settled();
  });
  const auto adoption = std::make_shared<Adoption>();
  for (const brick::SessionEntry& session : listed) {
    if (adopting_ && sessions_.contains(session.client)) {
      adoption->left.push_back(session);
    } else {
      close_listed(session.client, join.part());
    }
  }
  if (adopting_) {
    adoption->done = join.part();
    adopt_next(adoption);
  }
  join.end();
}

void BrickDevice::close_listed(uint64_t client, std::function<void()> done) {
  control_.close_session(
      {epoch_, client},
      guard<brick::StatusResult>([this, done = std::move(done)](Answer<brick::StatusResult> closed) {
        if (!usable()) return;
        if (!closed && closed.error() != brick::Status::kNotFound)
          return begin_again("a session could not be closed");
        done();
      }));
}

void BrickDevice::adopt_next(const std::shared_ptr<Adoption>& adoption) {
  if (adoption->left.empty()) return hooks_.adopted ? hooks_.adopted(adoption->done) : adoption->done();
  const uint64_t client = adoption->left.front().client;
  const uint64_t after = adoption->listed.empty() ? 0 : adoption->listed.back().grant;
  control_.list_grants({client, after},
                       [this, adoption, current = current()](Result<brick::GrantsResult> page) {
                         if (!current() || !usable()) return;
                         if (!page) return begin_again("the grants of a session could not be listed");
                         if (page->status != brick::Status::kOk && page->status != brick::Status::kNotFound)
                           return begin_again("it does not list grants");
                         std::ranges::move(page->grants, std::back_inserter(adoption->listed));
                         if (page->more && !page->grants.empty()) return adopt_next(adoption);
                         const brick::SessionEntry session = adoption->left.front();
                         adoption->left.pop_front();
                         std::vector<brick::Grant> listed = std::exchange(adoption->listed, {});
                         // Not found: the client's end has closed it meanwhile.
                         if (page->status == brick::Status::kNotFound) return adopt_next(adoption);
                         adopt(session, std::move(listed), adoption);
                       });
}

void BrickDevice::adopt(const brick::SessionEntry& session, std::vector<brick::Grant> grants,
                        const std::shared_ptr<Adoption>& adoption) {
  const auto found = sessions_.find(session.client);
  // Likewise: close_session() is behind us in the brick's queue.
  if (found == sessions_.end()) return adopt_next(adoption);
  found->second.open = true;
  found->second.grants = grants.size();
  const auto withdraw = [this, client = session.client, adoption,
                         current = current()](std::vector<uint64_t> orphans) {
    if (!current()) return;
    if (const auto kept = sessions_.find(client); kept != sessions_.end())
      kept->second.grants -= std::min(kept->second.grants, orphans.size());
    withdraw_orphans(client, std::move(orphans), [this, adoption] { adopt_next(adoption); });
  };
  if (hooks_.adopt) return hooks_.adopt(session, std::move(grants), withdraw);
  std::vector<uint64_t> all;
  for (const brick::Grant& grant : grants) all.push_back(grant.grant);
  withdraw(std::move(all));
}

// No record names them: they were not told to the client, or given back.
void BrickDevice::withdraw_orphans(uint64_t client, std::vector<uint64_t> grants,
                                   std::function<void()> done) {
  const Join join(std::move(done));
  for (size_t at = 0; at < grants.size(); at += brick::kGrantsPerCallMax) {
    const size_t count = std::min(brick::kGrantsPerCallMax, grants.size() - at);
    brick::WithdrawArguments arguments{.epoch = epoch_, .client = client};
    arguments.grants.assign(grants.begin() + static_cast<ptrdiff_t>(at),
                            grants.begin() + static_cast<ptrdiff_t>(at + count));
    control_.withdraw(arguments, guard<brick::StatusResult>(
                                     [this, end = join.part()](Answer<brick::StatusResult> withdrawn) {
                                       if (!usable()) return;
                                       if (!withdrawn && withdrawn.error() != brick::Status::kNotFound)
                                         return begin_again("grants could not be withdrawn");
                                       end();
                                     }));
  }
  join.end();
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/state.h"

// Revoked state. The server shows it in the flags of each SEQUENCE and remembers it until the client says
// that it knows: TEST_STATEID finds out what it is, FREE_STATEID ends it (RFC 8881, 18.38, 18.46.3, 18.48). In a
// new session of the same client it finds out what a server that was started again has kept.
// Both are posted: the background thread must not wait for an answer that it may have to reconnect for.
namespace pnfsrdma::initiator {
namespace {

using nfs4::Status;

// Far within ca_maxrequestsize.
constexpr size_t kStateidsPerTest = 1024;
// While the server is not content, it is not asked more often than this, nor are opens it does not know renewed.
constexpr Milliseconds kTestDistance = std::chrono::seconds(1);

bool is_revoked(Status status) {
  return status == Status::kExpired || status == Status::kAdminRevoked || status == Status::kDelegRevoked;
}

}  // namespace

void Session::State::free_revoked() {
  {
    Lock lock(mutex_);
    const auto time = steady_now();
    if (standing_ != Standing::kLive) return;
    const bool due = (status_flags_ & kRevokedFlags) != 0 && time >= test_again_at_;
    if (!std::exchange(test_wanted_, false) && !due) return;
    test_again_at_ = time + kTestDistance;
  }
  RecoveryHandler* const handler = recovery_handler;
  if (handler == nullptr) return;
  const std::vector<nfs4::Stateid> stateids = handler->stateids_in_doubt();
  for (size_t at = 0; at < stateids.size(); at += kStateidsPerTest) {
    const size_t count = std::min(kStateidsPerTest, stateids.size() - at);
    const auto first = stateids.begin() + static_cast<ptrdiff_t>(at);
    test_stateids({first, first + static_cast<ptrdiff_t>(count)});
  }
}

void Session::State::test_stateids(std::vector<nfs4::Stateid> stateids) {
  nfs4::TestStateidArguments arguments;
  arguments.stateids.assign(stateids.begin(), stateids.end());
  auto call = std::make_unique<Call>();
  call->operations.emplace_back(std::move(arguments));
  call->completion = [this, stateids = std::move(stateids)](const Result<CompoundReply>& reply) {
    const auto* result = reply ? reply->result<nfs4::TestStateidResponse>(0) : nullptr;
    if (result == nullptr || result->statuses.size() != stateids.size()) return;
    for (size_t i = 0; i < stateids.size(); ++i) {
      if (is_revoked(result->statuses[i])) {
        free_stateid(stateids[i]);
      } else if (result->statuses[i] == Status::kBadStateid) {
        gone(stateids[i]);
      }
    }
  };
  post(std::move(call));
}

void Session::State::free_stateid(const nfs4::Stateid& stateid) {
  auto call = std::make_unique<Call>();
  call->operations.emplace_back(nfs4::FreeStateidArguments{stateid});
  call->options.cache_reply = true;
  call->completion = [this, stateid](const Result<CompoundReply>& reply) {
    if (!reply || (!reply->ok() && reply->status != Status::kBadStateid)) return;
    log_info("session", "stateid-freed server={} status={}", server_name, nfs4::to_string(reply->status));
    gone(stateid);
  };
  post(std::move(call));
}

// Layouts stay: they are held by stateids of their own, and what is forgotten here would never be returned.
void Session::State::renew_opens() {
  Call call;
  call.began = now();
  Lock lock(mutex_);
  const uint64_t before = reclaims_;
  while (reclaims_ == before && standing_ == Standing::kLive) {
    if (stop_reason(lock, call)) return;
    if (now() >= renew_again_at_) {
      renew_again_at_ = now() + kTestDistance;
      renewal_wanted_ = true;
      lose(lock, socket_, Damage::kConnection, "the server does not know the stateid of an open");
    } else {
      changed_.wait_until(lock, std::min(renew_again_at_, now() + SessionSocket::kSlice));
    }
  }
  lock.unlock();
  // A SEQUENCE alone, which goes out when recovery is over. Whatever became of it, the caller's own call will
  // tell.
  (void)finish(call);
}

void Session::State::gone(const nfs4::Stateid& stateid) {
  if (RecoveryHandler* handler = recovery_handler) handler->stateid_gone(stateid);
}

}  // namespace pnfsrdma::initiator

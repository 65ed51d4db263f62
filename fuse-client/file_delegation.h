// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "shared/base/clock.h"
#include "shared/initiator/credential.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/open_operations.h"

namespace pnfsrdma::fuse_client {

// The delegation of one file (RFC 8881, 10.4). While one to read is in force, nobody else changes the file or its name
// before we have returned it; while one to write is, nobody else opens it either. So it is opened for what it allows,
// and its attributes are believed, without asking the server. Not thread-safe: the Inode's mutex guards it.
class FileDelegation {
 public:
  // One came with the answer to an OPEN of this user: asked at the one time, here at the other.
  struct Times {
    SteadyTime asked_at, answered_at;
  };
  struct Grant {
    nfs4::Stateid stateid;
    uint32_t allows = nfs4::kShareAccessRead;  // or kShareAccessBoth
    Times times;
    initiator::Credential opener;
    uint64_t change = 0;  // the file's change attribute in that answer
    bool with_creation = false;
  };
  // Nothing changes where it is the one that has ended here: several OPENs may have been answered with it.
  void take(const Grant& grant);
  bool is_held() const { return held_.has_value(); }
  bool has_ended() const { return held_ && held_->phase == Phase::kEnded; }
  bool in_force() const { return held_ && held_->phase == Phase::kInForce; }
  // What an open at the server has to be for, to be kept for the next one here; 0: none is held.
  uint32_t allows() const { return held_ ? held_->grant.allows : 0; }
  bool writes() const { return in_force() && allows() == nfs4::kShareAccessBoth; }
  // It came with the file's creation, and has been of no other use: the next who opens the file may be another host.
  bool ends_with_close() const { return in_force() && held_->grant.with_creation; }
  void used_again() {
    if (held_) held_->grant.with_creation = false;
  }
  // One to write that has not been returned, in its opener's name.
  struct ToReturn {
    nfs4::Stateid stateid;
    initiator::Credential user;
  };
  std::optional<ToReturn> to_write_by() const;
  // Of one to write: what CB_GETATTR is told as long as the server knows of all changes.
  uint64_t change() const { return held_ ? held_->grant.change : 0; }
  // Is what was asked for then of under the delegation? If it came with the delegation itself, or was asked for behind
  // its answer; what was asked for meanwhile may be older than a change of before it.
  bool covers(SteadyTime asked_at) const;

  // Who may open the file is the server's to say, for each once: here it has said so to an OPEN that was asked at that
  // time. (The entry in the delegation that could say it names nobody.)
  void admit(const initiator::Credential& user, uint32_t share_access, SteadyTime asked_at);
  bool admits(const initiator::Credential& user, uint32_t share_access) const;
  // Owner or mode are others, or going to be. What was asked for until now admits nobody.
  void forget_users(SteadyTime now);

  // From here on it is not used. False: none is in force.
  bool end();
  // To be returned: once, behind end().
  std::optional<ToReturn> begin_return();
  // True: it was another one, before reclaimed(); begin_return() gives this one.
  bool returned(const nfs4::Stateid& stateid);
  // The server that lost it has given it again.
  void reclaimed(const nfs4::Stateid& stateid);
  std::optional<nfs4::Stateid> stateid() const {
    return held_ ? std::optional(held_->grant.stateid) : std::nullopt;
  }
  bool is(const nfs4::Stateid& stateid) const { return held_ && held_->grant.stateid.other == stateid.other; }

  static constexpr size_t kUsersMax = 16;  // remembered; others ask the server

 private:
  enum class Phase { kInForce, kEnded, kReturning };
  struct User {
    initiator::Credential who;
    uint32_t share_access = 0;  // what he was granted
  };
  struct Held {
    Grant grant;
    std::vector<User> users;
    Phase phase = Phase::kInForce;
  };
  std::optional<Held> held_;
  SteadyTime rights_since_;
};

}  // namespace pnfsrdma::fuse_client

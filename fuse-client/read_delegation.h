// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "shared/base/clock.h"
#include "shared/initiator/credential.h"
#include "shared/nfs4/basic_types.h"

namespace pnfsrdma::fuse_client {

// The read delegation of one file (RFC 8881, 10.4). In force, nobody else changes the file or its name before we have
// returned it: so it is opened for reading, and its attributes are believed, without asking the server. Not
// thread-safe: the Inode's mutex guards it.
class ReadDelegation {
 public:
  // One came with the answer to an OPEN of this reader: asked at the one time, here at the other.
  struct Times {
    SteadyTime asked_at, answered_at;
  };
  // Nothing changes where it is the one that has ended here: several OPENs may have been answered with it.
  void take(const nfs4::Stateid& stateid, const Times& times, const initiator::Credential& reader);
  bool is_held() const { return held_.has_value(); }
  bool in_force() const { return held_ && held_->phase == Phase::kInForce; }
  // Is what was asked for then of under the delegation? If it came with the delegation itself, or was asked for behind
  // its answer; what was asked for meanwhile may be older than a change of before it.
  bool covers(SteadyTime asked_at) const;

  // Who may open the file is the server's to say, for each once: here it has said so to an OPEN that was asked at that
  // time. (The entry in the delegation that could say it names nobody.)
  void admit(const initiator::Credential& reader, SteadyTime asked_at);
  bool admits(const initiator::Credential& reader) const;
  // Owner or mode are others, or going to be. What was asked for until now admits nobody.
  void forget_readers(SteadyTime now);

  // From here on it is not used. False: none is in force.
  bool end();
  // To be returned, in that reader's name: once, behind end().
  struct ToReturn {
    nfs4::Stateid stateid;
    initiator::Credential reader;
  };
  std::optional<ToReturn> begin_return();
  void returned(const nfs4::Stateid& stateid);
  bool is(const nfs4::Stateid& stateid) const { return held_ && held_->stateid.other == stateid.other; }

  static constexpr size_t kReadersMax = 16;  // remembered; others ask the server

 private:
  enum class Phase { kInForce, kEnded, kReturning };
  struct Held {
    nfs4::Stateid stateid;
    Times times;
    initiator::Credential first_reader;
    std::vector<initiator::Credential> readers;
    Phase phase = Phase::kInForce;
  };
  std::optional<Held> held_;
  SteadyTime rights_since_;
};

}  // namespace pnfsrdma::fuse_client

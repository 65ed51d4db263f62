// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::mds {

// One slot of a fore channel: at most one request at a time, and its last reply (RFC 8881, 2.10.6.1).
struct Slot {
  uint32_t seqid = 0;                  // of the last request that was begun; the first one is 1
  bool in_progress = false;            // its reply has not left yet
  uint64_t request_hash = 0;           // tells a retry from a different request with the same seqid
  std::shared_ptr<const Bytes> reply;  // shared with the connection that sends it
};

// The slots of a session: decides whether a request is new, a retry or neither. Control loop only.
class SlotTable {
 public:
  // At least one slot.
  explicit SlotTable(uint32_t slots);

  enum class Verdict {
    kNew,             // run it
    kReplay,          // send at(slot).reply again
    kReplayUncached,  // a retry of a request whose reply was not kept
  };
  // Judges SEQUENCE. Changes nothing unless the answer is kNew; then the slot is in progress until finish().
  // Errors: BADSLOT, BAD_HIGH_SLOT, SEQ_MISORDERED, SEQ_FALSE_RETRY, DELAY.
  std::expected<Verdict, nfs4::Status> begin(uint32_t slot, uint32_t seqid, uint32_t highest_slot,
                                             uint64_t request_hash);
  // The request's reply is complete and durable. `reply` answers a retry; null if the client did not ask for
  // that.
  void finish(uint32_t slot, std::shared_ptr<const Bytes> reply);

  const Slot& at(uint32_t slot) const { return slots_[slot]; }
  uint32_t highest() const { return static_cast<uint32_t>(slots_.size()) - 1; }
  uint32_t busy() const { return busy_; }

  // What the server would like the client to use (sr_target_highest_slotid). Slots above it go as soon as the
  // client shows by its highest_slotid that it has stopped using them (RFC 8881, 2.10.6.1).
  uint32_t target_highest() const { return target_highest_; }
  // Down to any number below highest(), or back up to what the session began with.
  void set_target_highest(uint32_t slot);

 private:
  void shrink(uint32_t highest_of_client);

  std::vector<Slot> slots_;
  const uint32_t highest_at_start_;
  uint32_t target_highest_;
  uint32_t busy_ = 0;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/base/sync.h"

namespace pnfsrdma::initiator {

// The xid of a call names its slot in the low bits, so that a reply finds it without a search.
inline constexpr uint32_t kSlotBits = 8;
inline constexpr uint32_t kSlotsMax = 1u << kSlotBits;

// One slot of the fore channel (RFC 8881, 2.10.6.1) and the call that uses it. Its buffers keep their
// capacity from call to call: a call in steady state allocates nothing here. Guarded by the session's mutex,
// except where noted.
struct Slot {
  enum class Phase {
    kFree,
    kBuilding,     // its owner encodes; `request` is the owner's alone
    kSent,         // on the wire, or to be sent again after a reconnect; `request` is read-only
    kAnswered,     // `reply` is the owner's alone
    kSessionLost,  // the session died under it: to be rebuilt
    kFailed,       // `failure` says why
  };
  explicit Slot(uint32_t slot_id) : id(slot_id) {}

  const uint32_t id;
  uint32_t sequence = 1;  // of the next new request
  Phase phase = Phase::kFree;
  bool abandoned = false;  // the owner has gone: whoever gets the reply frees the slot
  bool sleeping = false;   // the owner waits on `changed`
  bool changes_data =
      false;            // of a file: not to be done behind the back of whoever writes the same bytes later
  bool voided = false;  // `request` is a SEQUENCE alone, in the place of what the owner has given up
  bool cached = false;  // the server was asked to keep the reply: doing it twice would be wrong
  bool posted = false;  // nobody waits: the reply goes to the posts thread
  uint32_t xid = 0;
  uint32_t rounds = 0;                      // distinguishes successive xids
  uint64_t session = 0;                     // SlotTable::session() when it was taken
  SteadyTime sent_at;                       // last transmission
  std::chrono::nanoseconds slept_before{};  // this host, before that
  uint32_t transmissions = 0;
  int failure = 0;  // errno
  Bytes request;    // the whole record, mark included: a reconnect sends exactly these bytes again
  Bytes reply;      // an RPC message
  Condition changed;
};

// Which slots there are, which are free, and how many may be used. Guarded by the session's mutex.
class SlotTable {
 public:
  // A new session begins with `count` slots (at least 1), all of them free: calls of before keep theirs, which
  // are retired(), until they give them back. With two or more, the last free one is kept for urgent calls.
  void reset(uint32_t count);

  // The lowest free slot (RFC 8881, 2.10.6.1: so that the server can shrink its cache), in phase kBuilding
  // with a new xid. Null when all are taken; the last one is only for `urgent`.
  Slot* take(bool urgent);
  // `sequence_used`: SEQUENCE succeeded, the next request has the next number (unless the session is another
  // by now).
  void give_back(Slot& slot, bool sequence_used);
  // The slot whose call has this xid; null when no such call is waiting for a reply.
  Slot* waiting_for(uint32_t xid);

  // One that is answered and whose owner has gone; null: there is none.
  Slot* unread();

  // CB_RECALL_SLOT and sr_target_highest_slotid: slots above are not used for new calls.
  void limit_highest(uint32_t highest);

  uint32_t highest_in_use() const;
  uint32_t in_use() const { return in_use_; }
  uint32_t usable() const { return usable_; }
  // Counts the sessions: a slot taken under another number belongs to a session that is gone.
  uint64_t session() const { return session_; }
  std::vector<std::unique_ptr<Slot>>& all() { return slots_; }
  // Of sessions that are gone.
  std::vector<std::unique_ptr<Slot>>& retired() { return retired_; }

 private:
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Slot>> retired_;  // those that are free again go with the next session
  uint64_t session_ = 0;
  uint32_t granted_ = 0;
  uint32_t usable_ = 0;
  uint32_t in_use_ = 0;
};

}  // namespace pnfsrdma::initiator

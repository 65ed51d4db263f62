// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "server/mds/meta/namespace.h"
#include "server/mds/meta/records.h"
#include "server/mds/state/session.h"
#include "server/mds/state/stateid.h"

namespace pnfsrdma::mds {

// The last change of the namespace that a request in a slot has made, in the same batch as the change. The
// reply cache does not survive the daemon: a client whose RENAME was done when the daemon died sends it
// again, by the session it had, and learns from this that it was done; by any other way it would be told
// NOENT. The session itself is as dead as before (RFC 8881, 2.10.6.5, of whose persistent sessions this is
// the part that matters).
struct DoneRecord {
  SessionId session{};
  uint32_t slot = 0;
  uint32_t seqid = 0;
  uint32_t operation = 0;     // its index in the COMPOUND
  uint64_t request_hash = 0;  // of the whole request
  StateidOther open{};        // of an OPEN that made its file: the open, in the same batch too; else zeros
};

// One a slot: each overwrites the one before. Control loop only. Errors: DELAY, IO.
class DoneRecords {
 public:
  explicit DoneRecords(KeyValueStore& store) : store_(store), records_(store) {}

  static void put(Batch& batch, const DoneRecord& record);
  // Of a session that is gone. A record that cannot be read is none.
  Outcome<std::optional<DoneRecord>> find(const SessionId& session, uint32_t slot);
  // What forgets a session that ends in order: nobody repeats anything in it. Only reads.
  Outcome<Batch> of_session(const SessionId& session);
  // What forgets those of sessions that are not `alive`, of up to `most` records from `from` on (a key; empty:
  // the first), and where to go on; empty: that was all. Only reads.
  struct Earlier {
    Batch dead;
    std::string next;
  };
  Outcome<Earlier> earlier(const std::function<bool(const SessionId&)>& alive, const std::string& from,
                           size_t most);
  Outcome<> forget(const Batch& records);

 private:
  KeyValueStore& store_;
  Records records_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// What survives a restart of the daemon beside the namespace. The numbers are on media.
enum class RecordKind : uint8_t {
  kClient = 1,
  kOpen = 2,
  kLayout = 3,
  kLock = 4,
  kBrick = 5,
  kConsole = 6,  // users and tokens of the console
  kExport = 7,   // from the first change of exports at run time on
  kSetting = 8,  // changed at run time
  kAhead = 9,    // files with memory ahead of their growth
  kExpiring =
      10,  // instead of kClient: the client is being taken apart, and what is left of it still conflicts
  kHandleKey = 11,        // what filehandles of an export are signed with, by its path
  kDone = 12,             // the last change that a request in a session's slot has made
  kDelegation = 13,       // to read; of some versions, also to write
  kHeldLayout = 14,       // a layout that a client holds, and each grant of it
  kTicket = 15,           // of a client's session at a brick
  kWriteDelegation = 16,  // which versions that know none to write do not look for
};

// State records: values only their writer understands (XDR behind a version number), by kind and key. Written
// before the reply without waiting for a sync: they survive the death of the daemon, not always that of the
// host. Control loop only.
class Records {
 public:
  explicit Records(KeyValueStore& store) : store_(store) {}

  // Its key in the store.
  static std::string key(RecordKind kind, std::string_view key);
  // Part of a batch the caller commits.
  static void put(Batch& batch, RecordKind kind, std::string_view key, std::string_view value);
  static void erase(Batch& batch, RecordKind kind, std::string_view key);

  // A batch of its own, kState. EAGAIN, EIO.
  Result<> put(RecordKind kind, std::string_view key, std::string_view value);
  Result<> erase(RecordKind kind, std::string_view key);

  Result<std::optional<std::string>> get(RecordKind kind, std::string_view key);
  // In the order of keys, until the visitor returns false.
  Result<> scan(RecordKind kind,
                const std::function<bool(std::string_view key, std::string_view value)>& visitor);
  // Forgets all records of a kind: what a reboot of the host does to state.
  Result<> clear(RecordKind kind);

 private:
  KeyValueStore& store_;
};

}  // namespace pnfsrdma::mds

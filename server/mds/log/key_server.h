// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Numbers the changes of a key server, in their order. Of a key: its last change; 0: there is no such key.
using KeyRevision = int64_t;

struct KeyRow {
  std::string key;
  std::string value;
  KeyRevision revision = 0;
};

// "If all these keys are as I know them, then change those; otherwise show me some": atomic.
struct KeyTransaction {
  struct Known {
    std::string key;
    KeyRevision revision = 0;
  };
  struct Put {
    std::string key;
    std::string value;
  };
  std::vector<Known> if_all;
  std::vector<Put> puts;
  std::vector<std::string> erases;
  std::vector<std::string> otherwise_read;
};

struct KeyOutcome {
  bool done = false;
  KeyRevision revision = 0;   // if done: what the keys put have now
  std::vector<KeyRow> found;  // if not: those of `otherwise_read` that are there
};

// A connection to a key server of several hosts that agree (etcd). Every method blocks, for some seconds at most. One
// thread at a time. Errors: EIO and what a network gives; of what changes something they leave open whether it was
// done, or will be: a request may arrive late. EPROTO: it was not done, and never will be. ENOSPC: the server is full.
class KeyServer {
 public:
  virtual ~KeyServer() = default;

  virtual Result<KeyOutcome> commit(const KeyTransaction& transaction) = 0;
  // Keys from `from` on, below `end`, in byte order: at most `limit`, as they are now (linearizable).
  virtual Result<std::vector<KeyRow>> range(std::string_view from, std::string_view end, size_t limit) = 0;
  // Erases the keys from `from` on, below `end`. The revision behind that.
  virtual Result<KeyRevision> erase(std::string_view from, std::string_view end) = 0;
  // Drops what the server remembers of revisions before this one.
  virtual Result<> forget(KeyRevision before) = 0;
};

// Each thread that asks has a connection of its own. Any thread.
using ConnectKeyServer = std::function<std::unique_ptr<KeyServer>()>;

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "shared/base/event_loop.h"
#include "shared/nfs4/compound.h"
#include "tests/bench/server/client.h"

namespace pnfsrdma::bench {

class Worker;
struct Tree;

inline constexpr uint64_t kNothingTaken = UINT64_MAX;

using Outcome = std::expected<void, nfs4::Status>;

// One COMPOUND of an operation.
struct Call {
  const char* what;  // for an error: "OPEN"
  void (*build)(Worker&, nfs4::CompoundWriter&);
  // Takes from the results what later calls need. Null: they are not looked at. Not called after an error.
  Outcome (*read)(Worker&, nfs4::CompoundResultReader&) = nullptr;
  bool cache = false;                          // sa_cachethis
  nfs4::Status also_good = nfs4::Status::kOk;  // a status that is no error here either
  bool (*again)(const Worker&) = nullptr;      // whether this call is made once more
  bool (*wanted)(const Worker&) = nullptr;     // whether it is made at all
};
using Calls = std::vector<Call>;

// One slot of one client, which does one operation after the other. It remembers what a row's calls need of
// each other. As a Client, of the loop's thread only.
class Worker {
 public:
  using Done = std::function<void(Result<>)>;

  Worker(EventLoop& loop, Client& client, uint32_t slot, uint32_t number, Tree& tree)
      : client(client),
        tree(tree),
        slot(slot),
        number(number),
        random(number * 2654435761u + slot + 1),
        loop_(loop) {}

  // Makes the calls in turn. DELAY, GRACE and LAYOUTTRYLATER are waited out (for minutes) and counted; any
  // other error ends it.
  void play(const Calls& calls, Done done);
  uint64_t delays() const { return delays_; }

  // xorshift: any of [0, below).
  uint32_t pick(uint32_t below) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return static_cast<uint32_t>(random % below);
  }

  Client& client;
  Tree& tree;
  const uint32_t slot;
  const uint32_t number;  // of the client
  uint64_t random;

  nfs4::FileHandle folder;  // the client's own
  nfs4::FileHandle file;    // the slot's own, in it
  nfs4::Stateid open;
  nfs4::Stateid lock;
  nfs4::Stateid layout;
  uint32_t made = 0;               // files of the row `create` that are still there
  uint32_t removed = 0;            // of them in the COMPOUND under way
  uint64_t taken = kNothingTaken;  // the number of the file or folder that is being made (fill.h)
  bool committed = false;          // by the last WRITE itself
  bool checked = false;            // the first answer of the row has been looked at in full

 private:
  void next();
  void answered(Result<nfs4::CompoundResultReader*> results);
  void finish(Result<> outcome);

  EventLoop& loop_;
  const Calls* calls_ = nullptr;
  size_t at_ = 0;
  Milliseconds pause_{1};   // before the next repetition
  Milliseconds paused_{0};  // for this call
  Done done_;
  uint64_t delays_ = 0;
};

}  // namespace pnfsrdma::bench

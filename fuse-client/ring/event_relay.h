// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "fuse-client/inode.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/initiator/file/watch.h"
#include "shared/ring/control.h"

namespace pnfsrdma::fuse_client {

// Hands what the mount is told of its files to the programs that watch them, each by a socket of its own. One
// thread for all, made for the first; it waits for no program: what a full socket does not take stays in the Watch,
// which makes a gap of it when it has too much. Thread-safe.
class EventRelay {
 public:
  static constexpr size_t kWatchesMax = 192;  // a brick keeps 256 of a client
  static constexpr size_t kWatchesOfAUserMax = 64;

  EventRelay() = default;
  ~EventRelay() { stop(); }
  EventRelay(const EventRelay&) = delete;
  EventRelay& operator=(const EventRelay&) = delete;

  // There may be one more. ENOSPC: there are too many.
  Result<> check_room(uid_t user);
  // Until end(), or until the program closes its end of the channel.
  Result<> begin(const OpenFile& file, uid_t user, std::shared_ptr<initiator::Watch> watch,
                 FileDescriptor channel);
  // Before the open file goes.
  void end(const OpenFile& file);
  void stop();

 private:
  struct Relayed {
    const OpenFile* file = nullptr;  // which one: not to be used
    uid_t user = 0;
    std::shared_ptr<initiator::Watch> watch;
    FileDescriptor channel;
    std::optional<ring::Event> held;  // the socket is full
    bool last_was_gap = false;        // of those it took
  };
  using All = std::map<uint64_t, Relayed>;

  bool open();
  void run();
  // False: the program is gone.
  bool pass_on(uint64_t number, Relayed& relayed);
  void listen(uint64_t number, const Relayed& relayed);
  // A gap is the last that the program has not received yet: another one would say nothing new.
  static bool gap_waits(const Relayed& relayed);
  void forget(All::iterator relayed, All& gone);

  Mutex mutex_;  // everything below
  All all_;
  uint64_t next_ = 1;
  FileDescriptor epoll_, wake_;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace pnfsrdma::fuse_client

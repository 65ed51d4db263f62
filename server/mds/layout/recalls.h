// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "server/mds/grants/layout_table.h"
#include "server/mds/state/recaller.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// The recall state machine (RFC 8881, 12.5.5): at most one CB_LAYOUTRECALL is pending per client and file;
// what is demanded meanwhile waits and becomes the next one. A recall is over when the client has nothing
// left in its range and the bricks have confirmed the handles' death, however that came about: LAYOUTRETURN,
// NOMATCHING_LAYOUT, or revocation after one lease (2.6: never earlier). Control loop only.
class Recalls {
 public:
  // How the recall gets at what is held; both withdraw at the bricks and then call settle().
  struct Powers {
    // The client says it has nothing there.
    std::function<void(uint64_t client, uint64_t inode, const ByteRange& range)> forget;
    // The client's time is over: everything it holds of the file dies.
    std::function<void(uint64_t client, uint64_t inode)> revoke;
    // Its stateid has changed. False: that is not on record, and must not be told.
    std::function<bool(const HeldLayout& layout)> record;
  };
  enum class Progress { kNone, kUnanswered, kAnswered };

  Recalls(EventLoop& loop, LayoutTable& table, LayoutRecaller& recaller, Milliseconds lease, Powers powers);
  ~Recalls();
  Recalls(const Recalls&) = delete;
  Recalls& operator=(const Recalls&) = delete;

  // Makes `client` give back `range` of the file, rounded out to whole grants. `done` runs once nothing of it
  // is reachable, at once if that is so already.
  void demand(uint64_t client, uint64_t inode, const ByteRange& range, std::function<void()> done);
  // Whether a recall that overlaps `range` is pending, and how far it is.
  Progress progress(uint64_t client, uint64_t inode, const ByteRange& range) const;
  // The client's layout of the file, or its dying grants, became less: finishes what is finished, in this turn or a
  // later one.
  void settle(uint64_t client, uint64_t inode);

  uint64_t sent() const { return sent_; }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // client, inode
  struct Demand {
    ByteRange range;
    std::function<void()> done;
  };
  struct Pending {
    bool active = false;
    uint64_t number = 0;  // tells a late answer's recall from its successor
    LayoutRecall message;
    bool recorded = false;
    bool answered = false;
    EventLoop::TimerId lease_timer = 0;
    EventLoop::TimerId retry_timer = 0;
    std::vector<Demand> demands;
  };

  void settle_later(uint64_t client, uint64_t inode);
  void begin(const Key& key, Pending& pending);
  void send(const Key& key);
  bool put_on_record(const Key& key, Pending& pending);
  void send_again(const Key& key, Pending& pending, Milliseconds pause);
  void answered(const Key& key, uint64_t number, RecallAnswer answer);
  void expire(const Key& key, uint64_t number);
  void end(const Key& key, Pending& pending);
  bool outgrown(const Key& key, const ByteRange& asked) const;
  // What it asks for has ended, and the client holds another layout of the file.
  bool outlived(const Key& key, const Pending& pending) const;
  Pending* find(const Key& key, uint64_t number);

  EventLoop& loop_;
  LayoutTable& table_;
  LayoutRecaller& recaller_;
  const Milliseconds lease_;
  Powers powers_;
  uint64_t next_number_ = 1;
  uint64_t sent_ = 0;
  bool in_done_ = false;  // somebody who has waited goes on right now
  std::map<Key, Pending> pending_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

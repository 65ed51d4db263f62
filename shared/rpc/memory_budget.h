// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shared/base/event_loop.h"
#include "shared/base/heap_trimmer.h"
#include "shared/base/lifetime.h"
#include "shared/rpc/limits.h"

namespace pnfsrdma::rpc {

class MemoryBudget;

struct MemoryLimits {
  size_t bytes = kBudgetBytes;
  // Of one peer address, which many clients behind a NAT share; 0: half of all.
  size_t bytes_per_address = 0;
  size_t connections_per_address = kConnectionsMax / 2;
  // Half a record of which nothing more comes ends its connection.
  Milliseconds stalled_record{20'000};
};

// What one connection holds of a MemoryBudget; its end gives all back. Loop thread only.
class MemoryAccount {
 public:
  struct Handlers {
    std::function<void()> on_relief;  // may_read() may have become true
    std::function<void()> on_victim;  // end this connection: its memory is needed, or it stands still
  };

  MemoryAccount(MemoryBudget& budget, std::string address) : budget_(budget), address_(std::move(address)) {}
  ~MemoryAccount();
  MemoryAccount(const MemoryAccount&) = delete;
  MemoryAccount& operator=(const MemoryAccount&) = delete;

  // Until handle({}): from the connection's start to its end.
  void handle(Handlers handlers) { handlers_ = std::move(handlers); }

  // It holds `bytes` now, half a record among them or not; `releasable` of them would be free at its end.
  void hold(size_t bytes, size_t releasable, bool half_record);
  size_t held() const { return held_; }
  // Bytes came or went.
  void moved();
  // A whole message came, or all of the output has gone.
  void completed();
  // Whether more may be read from this peer. What holds no more than kAccountFloor always may: small requests
  // (SEQUENCE, CLOSE, LAYOUTRETURN, LAYOUTCOMMIT) free memory and state. False: on_relief
  // is called when that changes.
  bool may_read();
  // Whether there is room for `bytes` more: for an answer that can be put off.
  bool has_room(size_t bytes) const;
  // MemoryBudget::outlive().
  std::function<void(size_t left)> outlive(size_t bytes);

 private:
  friend class MemoryBudget;

  // What one peer address has of the budget.
  struct Address {
    size_t connections = 0;
    size_t bytes = 0;
  };

  MemoryBudget& budget_;
  const std::string address_;
  Handlers handlers_;
  Address* of_ = nullptr;
  size_t held_ = 0;
  size_t releasable_ = 0;
  bool half_record_ = false;
  bool ended_ = false;  // its handler was called
  SteadyTime moved_;
  SteadyTime completed_;
};

// The memory that peers make a process hold: requests that have come in part or wait, answers not taken, what is
// reserved for answers kept (a session's reply cache), and state (what clients have open and locked). Kept answers and
// state may each have half of it, and together three quarters; the rest is for connections in any case. Near the end of
// what they have whoever holds more than his share is not read from any more; past it nobody is who holds more than
// the floor. When that does not help within a second, connections end: of the address that holds most, those first that
// have completed nothing for the longest time. Outlives the connections: main() makes it before the loop, which has
// them. Loop thread only.
class MemoryBudget {
 public:
  // What a connection may hold in any case.
  static constexpr size_t kAccountFloor = 16 * 1024;
  // Reads of a connection for whose next record there may be no memory: small requests pass, a large one
  // does not go far beyond the floor.
  static constexpr size_t kSmallRead = 8 * 1024;
  static constexpr size_t kUsualRead = 64 * 1024;
  // Bookkeeping of one connection, its socket's buffers in the kernel not counted.
  static constexpr size_t kConnectionCost = 2048;

  MemoryBudget(const Clock& clock, MemoryLimits limits);
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Looks after its limits every second, as long as the loop runs; some seconds after a burst (never while it
  // lasts) the freed memory goes back to the system.
  void start(EventLoop& loop);

  // The account of a new connection from `peer` ("192.0.2.7:1023", "unix"). Null: its address has as many as
  // it may have, or the budget is used up.
  std::shared_ptr<MemoryAccount> open(const std::string& peer);

  // For answers that are kept. False: nothing is reserved.
  bool reserve(size_t bytes);
  void give_back(size_t bytes);
  size_t reservable() const;
  // For state. Counted in any case: who makes it asks first whether it is within state_limit(), but a start of the
  // daemon brings what there was.
  void hold_state(size_t bytes);
  void give_back_state(size_t bytes);
  size_t state() const { return state_; }
  size_t state_limit() const;

  // So much of a connection outlives it, because it is freed in parts: told how much is left, until that is nothing.
  std::function<void(size_t left)> outlive(size_t bytes);

  const Clock& clock() const { return clock_; }
  const MemoryLimits& limits() const { return limits_; }
  size_t held() const { return held_ + kept(); }
  size_t reserved() const { return reserved_; }
  size_t connections() const { return accounts_.size(); }
  // Connections not read from because of the budget.
  size_t waiting() const { return waiting_.size(); }
  // Since the start.
  uint64_t refused() const { return refused_; }
  uint64_t ended() const { return ended_; }
  // How often it had the heap give back to the system what a burst had taken.
  uint64_t trims() const { return trims_; }

 private:
  friend class MemoryAccount;
  using Address = MemoryAccount::Address;

  // What answers kept and state take from the connections.
  size_t kept() const;
  size_t for_connections() const { return limits_.bytes - kept(); }
  bool over(const MemoryAccount& account, size_t more) const;
  void changed(MemoryAccount& account, size_t bytes);
  void relieve();
  void relieve_now();
  void look_later();
  void look();
  void trim_after_burst();
  // `left`: so many more may be ended in this turn.
  void end_some_now();
  void end_stalled(size_t& left);
  void end_victims(size_t& left);
  void end_victims(const std::string& address, size_t bytes, size_t& left);
  void end(MemoryAccount& account, const char* why);
  void close(MemoryAccount& account);

  const Clock& clock_;
  EventLoop* loop_ = nullptr;
  Lifetime lifetime_;  // what timers look at first
  const MemoryLimits limits_;
  size_t held_ = 0;
  size_t reserved_ = 0;
  size_t state_ = 0;
  size_t peak_ = 0;  // since the last look at it
  size_t peak_before_ = 0;
  uint64_t freed_ = 0;  // by how much peaks have fallen
  uint64_t trims_ = 0;
  int looks_ = 0;
  HeapTrimmer trimmer_{size_t{16} << 20, 2};
  std::unordered_map<std::string, Address> addresses_;
  std::unordered_set<MemoryAccount*> accounts_;
  std::unordered_set<MemoryAccount*> waiting_;
  bool relief_scheduled_ = false;
  bool ending_ = false;
  uint64_t refused_ = 0;
  uint64_t ended_ = 0;
  SteadyTime logged_;
};

// What limits per address count as one: an IPv4 address, the /64 of an IPv6 one, all Unix sockets.
std::string address_of_peer(const std::string& peer);

}  // namespace pnfsrdma::rpc

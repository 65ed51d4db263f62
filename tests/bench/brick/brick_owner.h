// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "shared/base/clock.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"
#include "shared/brick/client.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::bench {

using Ticket = xdr::FixedOpaque<brick::kTicketSize>;

// The MDS's place at a running brick daemon: claims it over its control socket and makes the calls of the
// control protocol as if they were synchronous. Errors name the call and the brick's status. Thread-safe;
// owns the thread of its loop.
class BrickOwner {
 public:
  // "/run/pnfsrdma/brick.sock" or "host:port". The brick must have no other MDS.
  static Result<std::unique_ptr<BrickOwner>> claim(const std::string& control);
  ~BrickOwner();
  BrickOwner(const BrickOwner&) = delete;
  BrickOwner& operator=(const BrickOwner&) = delete;

  const brick::ClaimResult& identity() const { return identity_; }
  // "host:port" where clients of this transport ("verbs", "iwarp") reach the brick. EHOSTUNREACH.
  Result<std::string> address_for(const std::string& transport) const;

  // Blocks under consecutive logical addresses; the first of them. Waits while blocks rest in quarantine.
  Result<uint64_t> alloc(uint64_t blocks);
  Result<Ticket> open_session(uint64_t client);
  // Of a client that is connected: the handle is valid.
  Result<brick::Grant> expose(uint64_t client, uint64_t logical, uint64_t length, bool writable);
  // Answered when the handle is dead: the announcement.
  Result<> withdraw(uint64_t client, uint64_t grant);
  Result<> close_session(uint64_t client);
  // Whether the brick has a connection of this client.
  Result<bool> connected(uint64_t client);

 private:
  explicit BrickOwner(const std::string& control);
  Result<> claim();
  template <typename Answer>
  Result<Answer> ask(const char* what,
                     std::function<void(brick::Control&, brick::Control::Done<Answer>)> call);

  SystemRandom random_;
  SystemClock clock_;
  EventLoop loop_{clock_};
  std::unique_ptr<brick::BrickClient> client_;
  uint64_t epoch_ = 0;
  uint64_t next_logical_ = 0;
  brick::ClaimResult identity_;
  std::thread thread_;
};

}  // namespace pnfsrdma::bench

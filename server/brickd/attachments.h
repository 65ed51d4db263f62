// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/random.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::brick {

// The processes of a partition's owner, and when each was last heard. Control loop only.
class Attachments {
 public:
  using Ticket = xdr::FixedOpaque<kTicketSize>;

  // `on_silent`: one has said nothing for the lease, and is not there any more. A loop that stood still reads
  // first what was said meanwhile.
  Attachments(EventLoop& loop, Random& random, Milliseconds lease, std::function<void(uint64_t)> on_silent);
  ~Attachments();

  // A number and a ticket that nobody can guess.
  std::pair<uint64_t, Ticket> add();
  void remove(uint64_t attachment) { all_.erase(attachment); }
  // Null: there is none. Else it was heard.
  const Ticket* hear(uint64_t attachment);
  size_t size() const { return all_.size(); }
  Milliseconds lease() const { return lease_; }

 private:
  struct Attachment {
    Ticket ticket{};
    SteadyTime heard;
  };
  void look_later();
  void end_silent(SteadyTime before);

  EventLoop& loop_;
  Random& random_;
  const Milliseconds lease_;
  const std::function<void(uint64_t)> on_silent_;
  std::unordered_map<uint64_t, Attachment> all_;
  EventLoop::TimerId timer_ = 0;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma {
class DeferredDestruction;
}
namespace pnfsrdma::initiator {

struct SessionOptions;

// One connection to the MDS, driven by the threads that use it: any thread sends, one at a time receives
// (whoever polls). Blocking calls return within kSlice, so that their callers can look at deadlines;
// shut_down() ends them at once. TCP or RPC-over-RDMA: the session cannot tell.
class SessionSocket {
 public:
  // Sends and looks for input, counted for the statistics: system calls on TCP.
  struct Counters {
    std::atomic<uint64_t> sends = 0;
    std::atomic<uint64_t> receives = 0;
  };
  static constexpr Milliseconds kSlice = std::chrono::seconds(1);

  // To `host`, as the options say: RPC-over-RDMA over the first of rdma_transports that reaches the MDS, or TCP if
  // there are none. An RDMA connection ends in `destruction`.
  static Result<std::shared_ptr<SessionSocket>> connect(const SessionOptions& options, std::string_view host,
                                                        Milliseconds timeout, size_t record_bytes_max,
                                                        Counters& counters, DeferredDestruction& destruction);
  virtual ~SessionSocket() = default;

  // Sends a whole record, mark included; gives up when the peer takes nothing for `patience`. An error means
  // that the connection is lost.
  virtual Result<> send(ByteSpan record, Milliseconds patience) = 0;

  // Receives what there is, after waiting at most kSlice for it if `wait`. Whole records are appended to
  // `records`. An error means that the connection is lost. One thread at a time.
  virtual Result<> receive(bool wait, std::vector<Bytes>& records) = 0;

  // Ends the connection under everybody's hands. Thread-safe, idempotent.
  virtual void shut_down() = 0;
  // Readable when receive() has something to do.
  virtual int fd() const = 0;
};

}  // namespace pnfsrdma::initiator

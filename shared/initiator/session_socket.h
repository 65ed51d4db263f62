// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/rpc/record.h"

namespace pnfsrdma::initiator {

// One TCP connection to the MDS, driven by the threads that use it: any thread sends, one at a time receives
// (whoever polls). Blocking calls return within kSlice, so that their callers can look at deadlines;
// shut_down() ends them at once.
class SessionSocket {
 public:
  // System calls on the socket, counted for the statistics.
  struct Counters {
    std::atomic<uint64_t> sends = 0;
    std::atomic<uint64_t> receives = 0;
  };
  static constexpr Milliseconds kSlice = std::chrono::seconds(1);

  static Result<std::shared_ptr<SessionSocket>> connect(const std::string& host, uint16_t port,
                                                        Milliseconds timeout, size_t record_bytes_max,
                                                        Counters& counters);
  // Takes a connected stream socket.
  SessionSocket(FileDescriptor socket, size_t record_bytes_max, Counters& counters);

  // Sends a whole record, mark included. One send() unless the socket's buffer is full; gives up when the
  // peer takes nothing for `patience`. An error means that the connection is lost.
  Result<> send(ByteSpan record, Milliseconds patience);

  // Receives what there is, after waiting at most kSlice for it if `wait`: one recv(). Whole records are
  // appended to `records`. An error means that the connection is lost. One thread at a time.
  Result<> receive(bool wait, std::vector<Bytes>& records);

  // Ends the connection under everybody's hands. Thread-safe, idempotent.
  void shut_down();
  int fd() const { return socket_.get(); }

 private:
  FileDescriptor socket_;
  Counters& counters_;
  std::mutex send_mutex_;
  rpc::RecordReader reader_;
};

}  // namespace pnfsrdma::initiator

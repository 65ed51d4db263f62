// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>
#include <string>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"

namespace pnfsrdma::rdma::iwarp {

// The byte stream under a connection. The TCP one is TcpStream; tests and the fuzzer feed frames from memory.
// One thread receives, one sends; shut_down() may come from any.
class Stream {
 public:
  virtual ~Stream() = default;

  // Bytes received, 0 at the end of the stream, or -errno; -EAGAIN when nothing is there. Never blocks.
  virtual ssize_t receive(std::span<const iovec> into) = 0;
  // The same, but blocks until there is at least a byte; -EAGAIN when `deadline` passed.
  virtual ssize_t receive_blocking(MutableByteSpan into, SteadyTime deadline) = 0;
  // Bytes taken, or -errno; -EAGAIN when the send buffer is full. Never blocks.
  virtual ssize_t send(std::span<const iovec> from) = 0;

  // Blocks until the stream can be read, or written when `writable`, until wake(), or until `deadline`; false
  // then.
  virtual bool wait_ready(bool readable, bool writable, SteadyTime deadline) = 0;
  // Ends a wait_ready() of another thread, or the next one. It does not reach receive_blocking().
  virtual void wake() = 0;

  // Ends sending, so that the peer sees an orderly end behind what was sent.
  virtual void finish_sending() = 0;
  // Ends both directions at once; a blocked receive returns.
  virtual void shut_down() = 0;

  // Readable when receive() has something; also writable-watching while watch_writable(true).
  virtual int fd() const = 0;
  virtual void watch_writable(bool on) = 0;
  virtual std::string peer() const = 0;
};

}  // namespace pnfsrdma::rdma::iwarp

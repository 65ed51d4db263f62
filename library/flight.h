// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "shared/base/result.h"

namespace pnfsrdma::library {

class OpenFile;

// A read, or a write to a place, from or to a program's memory.
struct Move {
  bool is_read = true;
  bool durable = false;  // a write's
  void* buffer = nullptr;
  size_t length = 0;
  uint64_t offset = 0;
};

// What is started in one go (Connection::together()): it goes out with one doorbell, and what of it has to be durable
// has one flush behind all of it. A connection's own.
class Together {
 protected:
  ~Together() = default;
};

// Starts such.
class Starter {
 public:
  virtual void start(Together& together) = 0;

 protected:
  ~Starter() = default;
};

// Hears, once, that what was started is complete, from whichever thread polls: it must not wait, nor call the
// connection.
class FlightListener {
 public:
  virtual void completed() = 0;

 protected:
  ~FlightListener() = default;
};

// A move that its caller does not wait for, one behind the other: start(), and when the listener has heard of it
// try_finish(), and when that would have to wait finish(). One thread at a time. It allocates nothing in steady state.
// It must live until what was started is complete.
class Flight {
 public:
  virtual ~Flight() = default;

  // `file`: of the connection that made it. Null `together`: it goes out at once. False: it would have to wait, or
  // fail; nothing has happened.
  virtual bool start(OpenFile& file, const Move& move, Together* together) = 0;
  // Bytes moved, durably if asked for. None: to tell takes waiting.
  virtual std::optional<Result<size_t>> try_finish() = 0;
  // Behind a try_finish() that said none.
  virtual Result<size_t> finish() = 0;
};

}  // namespace pnfsrdma::library

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "shared/base/bytes.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/rdma/region.h"

// The transport interface in the words of the trade. Three implementations: verbs, iwarp (user space, over
// TCP) and memory (in-process). One test-suite, tests/unit/rdma, runs over all of them.
//
// Rules every implementation keeps:
// - Work requests of a queue pair run in order; a FLUSH or READ is executed by the target after all earlier
// WRITEs, an ATOMIC WRITE after all earlier WRITEs and FLUSHes.
// - A WRITE *completes* when the target's transport has it, never when it was merely handed to the local
// kernel. Until
//   then the source belongs to the queue pair.
// - The first access the target refuses ends the connection (reliable-connected semantics): the work request
// completes
//   with kRemoteAccess, everything behind it with kFlushed.
// - Destroying a Region ends remote access to it before the destructor returns: afterwards no byte of it is
// read or
//   written for anybody, whatever is in flight, and no peer's help is needed. Connections are not disturbed
//   by it until somebody uses the dead key.
namespace pnfsrdma::rdma {

enum class Opcode : uint8_t { kWrite, kRead, kSend, kReceive, kFlush, kAtomicWrite };

enum class Outcome : uint8_t {
  kSuccess,
  kFlushed,          // never ran, or is not known to have run: the connection ended first
  kLocalProtection,  // a local slice is not inside a region of this protection domain with the right it needs
  kRemoteAccess,     // the target refused: key, bounds, rights or protection domain
  kRemoteOperation,  // the target could not do it, e.g. a flush that failed
  kLengthError,      // a message longer than the posted receive
  kConnectionLost,   // the peer went away or broke the protocol
};
const char* to_string(Outcome outcome);

enum class FlushLevel : uint8_t { kGlobalVisibility = 2, kPersistent = 1 };

// Bytes an ATOMIC WRITE moves, to an address that is a multiple of as many.
inline constexpr uint32_t kAtomicWriteSize = 8;

// What became of one work request. `work_id` is the poster's; `length` is the bytes received (kReceive) or
// moved.
struct Completion {
  uint64_t work_id = 0;
  Opcode opcode = Opcode::kWrite;
  Outcome outcome = Outcome::kSuccess;
  uint32_t length = 0;
};

// What both ends agreed on when they connected.
struct QueuePairLimits {
  uint32_t send_depth = 128;          // work requests posted and not completed
  uint32_t receive_depth = 32;        // receives posted and not completed
  uint32_t read_depth = 16;           // READs and FLUSHes in flight (ORD); more are queued, not refused
  uint32_t message_size_max = 65536;  // of a SEND, bytes
  bool native_flush = false;          // post_flush works
  bool atomic_write = false;          // post_atomic_write works
};

// Bytes and operations that really moved, counted where they moved. Relaxed atomics behind it: read from any
// thread.
struct TransportCounters {
  uint64_t write_bytes = 0, write_operations = 0;
  uint64_t read_bytes = 0, read_operations = 0;
  uint64_t send_operations = 0, receive_operations = 0, flush_operations = 0;
  uint64_t atomic_write_operations = 0;
  // The other side's operations on our memory, where the transport runs in software; an ATOMIC WRITE is a
  // WRITE here.
  uint64_t responder_write_bytes = 0, responder_write_operations = 0;
  uint64_t responder_read_bytes = 0, responder_read_operations = 0;
  uint64_t responder_flush_operations = 0;
};

// Slices one WRITE or SEND may gather.
inline constexpr size_t kGatherMax = 16;

// One reliable connection. post_*() and submit() belong to one thread at a time (the caller's lock), as do
// poll() and wait(); one thread may post while another waits. fail() and counters() may be called from any
// thread.
class QueuePair {
 public:
  virtual ~QueuePair() = default;

  // Each post queues one work request; nothing is sent before submit() or poll(). Errors: ENOTCONN (ended),
  // ENOBUFS (send_depth or receive_depth reached; a work request counts until poll() has delivered it),
  // EINVAL (remote slice wraps or is over 4 GiB-1, is shorter than the source, more than kGatherMax slices,
  // no place for an ATOMIC WRITE), EMSGSIZE (SEND over message_size_max), EOPNOTSUPP (FLUSH or ATOMIC WRITE
  // not agreed on). A bad local slice is a completion, kLocalProtection.
  virtual Result<> post_write(uint64_t work_id, std::span<const LocalSlice> source, RemoteSlice target) = 0;
  virtual Result<> post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) = 0;
  virtual Result<> post_send(uint64_t work_id, std::span<const LocalSlice> message) = 0;
  // A SEND nobody waits for: it may complete only with a later work request, or kFlushed, though it was
  // delivered, when the connection ends before that. For an answer whose arrival the peer's next message
  // shows.
  virtual Result<> post_send_lazily(uint64_t work_id, std::span<const LocalSlice> message) {
    return post_send(work_id, message);
  }
  virtual Result<> post_receive(uint64_t work_id, LocalSlice buffer) = 0;
  virtual Result<> post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) = 0;
  // Stores `value`, byte for byte as it lies in memory here, by one store: who loads the target's eight bytes
  // by one load finds the old ones or the new. A value that commits what was written and flushed before it.
  // It needs Access::kRemoteWrite, and `target` to be kAtomicWriteSize bytes, aligned to as many.
  virtual Result<> post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) = 0;

  // Rings the doorbell: everything posted goes out, in as few system calls as can be. On iwarp a batch that
  // ends in WRITEs gets the READ behind it that proves them.
  virtual void submit() = 0;

  // Takes completions that are there, driving the connection without blocking (on iwarp this also serves the
  // peer's requests). Returns how many were written to `completions`; 0 with connected() == false means all
  // are delivered.
  virtual size_t poll(std::span<Completion> completions) = 0;

  // Blocks until poll() would find something to do, until `deadline`, or until the connection ends; spins
  // first where that pays (never with one CPU to run on). False when the deadline passed.
  virtual bool wait(SteadyTime deadline) = 0;

  // Readable when poll() has work, for a loop that waits on many things. A call of poll() that returns 0
  // re-arms it.
  virtual int fd() const = 0;

  virtual bool connected() const = 0;
  // Moves the queue pair to the error state at once: every outstanding work request completes with kFlushed,
  // the peer sees the connection end, wait() returns. Thread-safe; idempotent.
  virtual void fail() = 0;

  virtual const QueuePairLimits& limits() const = 0;
  virtual TransportCounters counters() const = 0;
  // "127.0.0.1:40312" or the like, for logs.
  virtual std::string peer() const = 0;
};

// What a peer says when it connects: opaque to the transport, at most kPrivateDataMax bytes.
inline constexpr size_t kPrivateDataMax = 56;

struct ConnectOptions {
  Bytes private_data;
  QueuePairLimits limits;
  SteadyTime deadline;
};

struct Connected {
  std::unique_ptr<QueuePair> queue_pair;
  Bytes private_data;  // of the peer's reply
};

// An incoming connection before it is answered. Exactly one of accept() and reject() is called, from any
// thread; dropping it rejects with no reason.
class ConnectionRequest {
 public:
  virtual ~ConnectionRequest() = default;
  virtual ByteSpan private_data() const = 0;
  virtual std::string peer() const = 0;
  // The protection domain decides which regions the peer can reach.
  virtual Result<std::unique_ptr<QueuePair>> accept(std::shared_ptr<ProtectionDomain> domain,
                                                    ByteSpan private_data, const QueuePairLimits& limits) = 0;
  // `private_data` tells the peer why.
  virtual void reject(ByteSpan private_data) = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;  // stops listening; connections made live on
  // The universal address clients can use, with the port filled in when 0 was asked: "127.0.0.1:20050".
  virtual std::string address() const = 0;
};

// A transport on one device (verbs), on this host's TCP (iwarp), or in this process (memory). Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // "iwarp", "verbs", "memory": shown to users.
  virtual std::string name() const = 0;
  // Of the RDMA device, "mlx5_0"; empty where there is none.
  virtual std::string device() const { return {}; }

  virtual std::shared_ptr<ProtectionDomain> make_protection_domain() = 0;

  // Registers `memory` with the given rights. It must outlive the Region. Errors name the cause and the fix
  // (memlock, a mapping that cannot be pinned, …); EOPNOTSUPP when kFlush is asked and cannot be given.
  virtual Result<std::unique_ptr<Region>> register_region(std::shared_ptr<ProtectionDomain> domain,
                                                          MutableByteSpan memory, Access access,
                                                          Flusher* flusher = nullptr) = 0;

  // Connects to "host:port" and waits for the answer until options.deadline. Errors: ECONNREFUSED when the
  // peer rejected; then Error::what() is the private data of its reject, byte for byte, when it gave any.
  // ETIMEDOUT, EHOSTUNREACH, EPROTO as usual.
  virtual Result<Connected> connect(const std::string& address, std::shared_ptr<ProtectionDomain> domain,
                                    const ConnectOptions& options) = 0;

  // Listens on "host:port" (port 0: any). `on_request` is called from a thread of the transport's.
  virtual Result<std::unique_ptr<Listener>> listen(
      const std::string& address, std::function<void(std::unique_ptr<ConnectionRequest>)> on_request) = 0;
};

}  // namespace pnfsrdma::rdma

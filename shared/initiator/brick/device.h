// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/initiator/brick/event_inbox.h"
#include "shared/initiator/brick/fabric.h"
#include "shared/initiator/brick/hello.h"
#include "shared/initiator/brick/replay_slots.h"
#include "shared/initiator/brick/shared_queue_pair.h"
#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::initiator {

using nfs4::DeviceId;
using BrickVerifier = xdr::FixedOpaque<8>;

enum class FlushMethod { kNative, kCommitMessage, kLayoutCommit };
const char* to_string(FlushMethod method);

// A device as long as one connection to it lasts: what the hello said does not change. Thread-safe.
struct Connection {
  Connection(std::unique_ptr<rdma::QueuePair> pair, std::unique_ptr<MessageArea> area, Hello said)
      : queue_pair(std::move(pair), std::move(area)), hello(std::move(said)), events(queue_pair) {}

  SharedQueuePair queue_pair;
  const Hello hello;
  EventInbox events;
  brick::AcceptPrivateData said;  // before that, when it accepted the connection
  size_t transport = 0;
  // Layouts taken under another incarnation are void.
  uint32_t incarnation = 0;
  FlushMethod flush = FlushMethod::kLayoutCommit;
  // Also where `flush` is another method.
  bool takes_commit_message = false;
  // Why this path and no other, for people (why_chosen()).
  std::string choice;
  // CompletionPoller's: it has it.
  std::atomic<bool> polled = false;

  enum class Lookup { kFound, kDead, kNewer };
  // Where the target's memory is on this connection: "generation older than its hello's -> look the grant up
  // there; newer
  // -> wait for that hello". `generation` is LayoutBody::connection.
  Lookup resolve(uint32_t generation, const nfs4::Target& target, uint64_t length,
                 rdma::RemoteSlice& slice) const;
};

// One brick on one rail: one queue pair, created when it is first needed and recreated when it died.
// Thread-safe; never destroyed while the mount lives, so that layouts and pins point to it.
class Device {
 public:
  Device(const DeviceId& id, Fabric& fabric);
  // Nobody uses it.
  ~Device() = default;

  // The live connection, or one made now: GETDEVICEINFO, connect with the ticket, hello. One thread connects,
  // the others wait for it. Errors: no answer (then the device rests, with growing pauses: ENOTCONN at once),
  // ESHUTDOWN, no usable path (EAFNOSUPPORT), memory that is less than required (EIO).
  Result<std::shared_ptr<Connection>> connect();
  // The live connection; none: there is none. Does not wait.
  std::shared_ptr<Connection> live() const;
  // This connection is of no use any more: the next connect() makes another.
  void lost(const std::shared_ptr<Connection>& connection);
  // GETDEVICEINFO is out of date (CB_NOTIFY_DEVICEID).
  void forget_address();
  void abort();

  // Layouts whose incarnation is another one are void: the ticket was refused or the brick counts from the
  // start again.
  uint32_t incarnation() const { return incarnation_.load(std::memory_order_acquire); }
  const DeviceId& id() const { return id_; }
  // It has just not answered: connect() fails at once for a while.
  bool rests() const;
  // There is no connection, or what is in flight there has had no answer since whoever asks began to ask, and
  // for `patience`. For one thread that asks again and again.
  bool silent(Milliseconds patience);
  ReplaySlots& replay_slots() { return replay_slots_; }
  // Nothing leads there, and the server has not been told so for DataPathOptions::report_distance: whoever asks
  // tells it.
  bool report_due();
  // Its memory, as GETDEVICEINFO last told, is less than the mount requires: connect() fails, and no other
  // way leads there either.
  bool too_weak() const { return too_weak_.load(std::memory_order_acquire); }
  // What an I/O then ends with: EIO.
  Error weakness() const;

  struct View {
    std::shared_ptr<Connection> connection;  // none: not connected
    std::optional<nfs4::DeviceAddress> address;
  };
  View view() const;

 private:
  using Lock = std::unique_lock<Mutex>;
  Result<std::shared_ptr<Connection>> establish();
  Result<nfs4::DeviceAddress> address();
  Result<std::shared_ptr<Connection>> connect_to(const nfs4::DeviceAddress& address, SteadyTime deadline);
  Result<std::shared_ptr<Connection>> finish_connect(const nfs4::DeviceAddress& address, size_t transport,
                                                     rdma::Connected connected, SteadyTime deadline);
  Result<> check_durability(const nfs4::DeviceAddress& address);
  void ticket_refused();
  void failed(const Error& error);
  void established(std::shared_ptr<Connection> connection);

  const DeviceId id_;
  Fabric& fabric_;
  std::atomic<uint32_t> incarnation_ = 1;
  std::atomic<bool> too_weak_ = false;
  ReplaySlots replay_slots_;

  mutable Mutex mutex_;
  Condition changed_;
  std::shared_ptr<Connection> connection_;
  std::optional<nfs4::DeviceAddress> address_;
  bool connecting_ = false;
  bool ever_connected_ = false;
  uint32_t last_generation_ = 0;
  SteadyTime not_before_{};
  Milliseconds pause_{0};
  std::optional<SteadyTime> reported_at_;
  // silent()'s: what it saw last, and since when that has not changed.
  SharedQueuePair::Progress seen_;
  SteadyTime seen_since_{};
};

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "shared/base/sync.h"
#include "shared/rdma/completion_queue.h"
#include "shared/rdma/counters.h"
#include "shared/rdma/transport.h"
#include "shared/rdma/verbs/endpoint.h"
#include "shared/rdma/verbs/private_data.h"
#include "shared/rdma/verbs/receive_queue.h"
#include "shared/rdma/verbs/send_queue.h"
#include "shared/rdma/verbs/spin_budget.h"

namespace pnfsrdma::rdma::verbs {

// A reliable connection of an RDMA device.
//
// It ends in two steps. kEnding: the queue pair is in the error state, nothing moves, posts are refused, the
// device hands back what was posted. kClosed, which is when connected() turns false: all of that has been
// handed back, or the device has had its time for it. Whatever goes wrong (an error completion, the peer's
// disconnect, an asynchronous event, the removal of the device) takes this way.
//
// The accepting side answers its peer in the first submit(), poll() or wait(), not in accept(): by then its
// receives are posted, and the peer's first message finds one. fd() is readable from the start for that.
//
// Locks: post_mutex_ for the posting side, poll_mutex_ for the polling side, in this order: poll, then post.
// answer_mutex_ is taken alone or last.
class VerbsQueuePair final : public QueuePair, private AsyncEventTarget {
 public:
  // Makes it in the INIT state; on the accepting side `limits` are what was agreed on. The connection is
  // established afterwards: by the connecting side with established(), by the accepting side with
  // answer_later().
  static Result<std::unique_ptr<VerbsQueuePair>> make(std::shared_ptr<VerbsDomain> domain,
                                                      ConnectionEvents events, Identifier identifier,
                                                      const QueuePairLimits& limits);
  ~VerbsQueuePair() override;

  Endpoint& endpoint() { return *endpoint_; }
  // Connecting side: the peer has answered this.
  void established(uint32_t read_depth, const PrivateData& reply);
  // Accepting side: what to send when the owner first looks after its connection.
  void answer_later(Bytes private_data, uint8_t read_depth_in, uint8_t read_depth_out);

  Result<> post_write(uint64_t work_id, std::span<const LocalSlice> source, RemoteSlice target) override;
  Result<> post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) override;
  Result<> post_send(uint64_t work_id, std::span<const LocalSlice> message) override;
  Result<> post_send_lazily(uint64_t work_id, std::span<const LocalSlice> message) override;
  Result<> post_receive(uint64_t work_id, LocalSlice buffer) override;
  Result<> post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) override;
  Result<> post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) override;
  void submit() override;
  size_t poll(std::span<Completion> completions) override;
  bool wait(SteadyTime deadline) override;
  int fd() const override;
  bool connected() const override { return state_.load(std::memory_order_acquire) != State::kClosed; }
  void fail() override;
  const QueuePairLimits& limits() const override { return limits_; }
  TransportCounters counters() const override { return counters_.read(); }
  std::string peer() const override { return peer_; }

 private:
  enum class State : uint8_t { kReady, kEnding, kClosed };
  // What rdma_accept is to be called with.
  struct Answer {
    Bytes private_data;
    uint8_t read_depth_in = 0;
    uint8_t read_depth_out = 0;
  };

  VerbsQueuePair(const QueuePairLimits& limits);
  Result<> open(std::shared_ptr<VerbsDomain> domain, ConnectionEvents events, Identifier identifier);
  void async_event(ibv_event_type type) override;
  Result<> check_ready() const;
  Result<> add_send(uint64_t work_id, std::span<const LocalSlice> message, Signal signal);
  void answer();
  void end(const char* reason);
  void wake() const;

  // With poll_mutex_ held.
  bool something_to_deliver();
  void collect();
  void look_at_events();
  void look_at_all_fds();
  void take_connection_event(const ConnectionEvent& event);
  void try_close();
  size_t deliver(std::span<Completion> completions);
  bool arm();
  void disarm();

  bool spin(SteadyTime start, SteadyTime deadline);

  QueuePairLimits limits_;
  std::string peer_;
  AtomicCounters counters_;
  std::atomic<State> state_ = State::kReady;
  std::atomic<bool> device_removed_ = false;
  mutable std::atomic<bool> watched_ = false;  // somebody has asked for fd()
  std::atomic<SteadyTime> ended_at_{};

  Mutex poll_mutex_;
  Mutex post_mutex_;
  Mutex answer_mutex_;
  std::unique_ptr<Answer> answer_;  // under answer_mutex_; null once given
  std::atomic<bool> answer_due_ = false;
  CompletionQueue completed_;
  SpinBudget spin_budget_;
  bool armed_ = false;           // a completion event has been asked for and not been seen
  unsigned unacknowledged_ = 0;  // completion events
  unsigned empty_polls_ = 0;

  FileDescriptor wake_;
  FileDescriptor epoll_;
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<SendQueue> sends_;
  std::unique_ptr<ReceiveQueue> receives_;
};

}  // namespace pnfsrdma::rdma::verbs

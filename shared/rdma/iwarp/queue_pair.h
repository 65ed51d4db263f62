// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "shared/base/sync.h"
#include "shared/rdma/iwarp/frame_batch.h"
#include "shared/rdma/iwarp/frame_reader.h"
#include "shared/rdma/iwarp/requester.h"
#include "shared/rdma/iwarp/responder.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma::iwarp {

// What the MPA handshake settled.
struct Agreement {
  bool crc = false;
  bool first_to_speak = true;   // false for the accepting side: it sends no FPDU before it has received one
  uint32_t inbound_depth = 16;  // IRD: READs and FLUSHes the peer may have in flight
  QueuePairLimits limits;       // read_depth: our ORD
};

// An iWARP connection: requester, responder, frame reader and frame batch around one stream.
//
// One mutex guards everything but the reader (it belongs to the polling thread) and the batch while
// `sending_` (it belongs to the sending thread). No system call on the socket is made with the mutex held.
//
// Cost of one READ at queue depth 1: one sendmsg and one recv on either side, no allocation; the payload is
// copied once more than TCP would when it is smaller than 8 KiB, else not.
class IwarpQueuePair final : public QueuePair, private SegmentHandler {
 public:
  IwarpQueuePair(std::unique_ptr<Stream> stream, std::shared_ptr<SoftwareDomain> domain,
                 const Agreement& agreement);
  ~IwarpQueuePair() override;

  Result<> post_write(uint64_t work_id, std::span<const LocalSlice> source, RemoteSlice target) override;
  Result<> post_read(uint64_t work_id, LocalSlice sink, RemoteSlice source) override;
  Result<> post_send(uint64_t work_id, std::span<const LocalSlice> message) override;
  Result<> post_receive(uint64_t work_id, LocalSlice buffer) override;
  Result<> post_flush(uint64_t work_id, RemoteSlice target, FlushLevel level) override;
  Result<> post_atomic_write(uint64_t work_id, uint64_t value, RemoteSlice target) override;
  void submit() override;
  size_t poll(std::span<Completion> completions) override;
  bool wait(SteadyTime deadline) override;
  int fd() const override { return stream_->fd(); }
  bool connected() const override { return state_.load(std::memory_order_acquire) != State::kClosed; }
  void fail() override;
  const QueuePairLimits& limits() const override { return limits_; }
  TransportCounters counters() const override { return counters_.read(); }
  std::string peer() const override { return peer_; }

 private:
  // kTerminating: every work request has ended, a Terminate is on its way; input is thrown away until the
  // peer hangs up, so that a reset does not overtake the Terminate.
  enum class State : uint8_t { kReady, kTerminating, kClosed };
  using Lock = std::unique_lock<Mutex>;
  using Input = FrameReader::Input;

  Verdict begin_segment(const Segment& segment, Placement& placement) override;
  Verdict end_segment(const Segment& segment) override;
  Verdict control_segment(const Segment& segment, ByteSpan payload) override;
  Verdict flush(Lock& lock, const Segment& segment, ByteSpan payload);

  Result<> check_connected() const;
  bool ready() const { return state_.load(std::memory_order_relaxed) == State::kReady; }

  void pump(Lock& lock);
  bool fill_batch();
  bool add_next_message();
  void batch_ended(FrameBatch::Sent sent);
  void source_died();
  void help_full_socket();

  bool input_came(Input input);
  void drain(SteadyTime deadline);
  void break_off(Lock& lock);
  void begin_terminating(TerminateCode code, ByteSpan failed);
  // Nobody is sending from posters' memory when it returns: their work requests may end, and the memory be used
  // for something else. pump() does not begin anew as long as it lives.
  class SenderPause {
   public:
    SenderPause(IwarpQueuePair& queue_pair, Lock& lock);
    ~SenderPause() { --queue_pair_.pauses_; }
    SenderPause(const SenderPause&) = delete;
    SenderPause& operator=(const SenderPause&) = delete;

   private:
    IwarpQueuePair& queue_pair_;
  };
  void close(Lock& lock, Outcome outcome);
  // With the sender paused, or as the sender.
  void end(Outcome outcome);

  const std::unique_ptr<Stream> stream_;
  const std::shared_ptr<SoftwareDomain> domain_;
  const QueuePairLimits limits_;
  const std::string peer_;
  AtomicCounters counters_;

  mutable Mutex mutex_;
  std::atomic<State> state_ = State::kReady;
  CompletionQueue completions_;
  Requester requester_;
  Responder responder_;
  bool may_send_;
  bool sending_ = false;  // a thread is in pump(); it will look again before it leaves
  bool in_send_ = false;  // and does not hold the mutex now
  int pauses_ = 0;
  Condition send_left_;
  bool socket_full_ = false;
  bool send_failed_ = false;
  bool response_turn_ = false;  // responses and requests take turns
  bool waiting_ = false;        // a thread blocks for input
  bool skipped_ = false;        // the last poll() did not look, so the next one does
  bool fresh_ = false;          // submit() was the last thing that happened
  bool wakeable_ = false;       // posts of other threads complete while one waits: it has to wait in poll(2)
  bool terminate_added_ = false;
  TerminateCode terminate_code_;
  std::array<std::byte, kReadRequestSize> terminate_header_;
  size_t terminate_header_size_ = 0;
  SteadyTime drain_until_;

  FrameBatch batch_;
  FrameReader reader_;
};

}  // namespace pnfsrdma::rdma::iwarp

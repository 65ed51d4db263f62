// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "fuse-client/ring/ring_server.h"
#include "shared/initiator/file/pending_io.h"

namespace pnfsrdma::fuse_client {

// One that was taken from a ring, on its way. Used again and again; there are as many as were ever under way at once.
class RingServer::Operation final : private initiator::PendingIoListener {
 public:
  explicit Operation(RingServer& server) : server_(server) {}

  // Where it is on the way.
  enum class Step : uint8_t { kAtBricks, kDropsPages };

  ring::Submission submission;
  std::shared_ptr<Program> program;
  std::shared_ptr<AttachedFile> file;  // not any more when its pages are being dropped
  std::shared_ptr<Inode> dropping;     // then: whose
  std::shared_ptr<initiator::Buffer> memory;
  initiator::ErrorCursor losses;  // of before it began
  Step step = Step::kAtBricks;
  bool started = false;  // start() was asked
  int64_t result = ring::kUseDescriptor;
  Operation* next = nullptr;  // in a list: nobody's, or completed

  bool is_read() const { return submission.opcode == static_cast<uint32_t>(ring::Opcode::kRead); }
  bool is_durable() const {
    return !is_read() && (file->durable || (submission.flags & ring::kDurable) != 0);
  }

  // False: it would have to wait.
  bool start(initiator::FlushChains* chains) {
    const auto slice = memory->slice(submission.memory_offset, submission.length);
    const auto stability = is_durable() ? initiator::Stability::kDataSync : initiator::Stability::kUnstable;
    return is_read()
               ? file->data->start_read(io_, submission.offset, slice, this, initiator::Doorbell::kLater)
               : file->data->start_write(io_, submission.offset, slice, stability, this,
                                         initiator::Doorbell::kLater, chains);
  }
  // When start() said so: it only has to wait for what is under way already.
  bool lacked_room() const { return io_.lacked_room(); }
  // What the bricks have made of it; kUseDescriptor when that is not all.
  int64_t take_result() {
    initiator::FileIo& data = *file->data;
    if (data.finish_may_wait(io_)) {
      data.abandon(io_);
      return ring::kUseDescriptor;
    }
    const Result<size_t> moved = data.finish(io_);
    // A read that ended: another client may have written behind the end that is known here.
    if (!moved || *moved < submission.length) return ring::kUseDescriptor;
    if (is_durable() && !data.is_durable(losses)) return ring::kUseDescriptor;
    return static_cast<int64_t>(*moved);
  }
  void clear() {
    program.reset();
    file.reset();
    dropping.reset();
    memory.reset();
  }

 private:
  void completed(initiator::PendingIo&) override { server_.completed(*this); }

  RingServer& server_;
  initiator::PendingIo io_;
};

}  // namespace pnfsrdma::fuse_client

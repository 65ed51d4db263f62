// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/initiator/brick/hello.h"
#include "shared/initiator/brick/message_area.h"
#include "shared/nfs4/pmem_layout.h"
#include "tests/crash/images/system.h"

namespace pnfsrdma::crash {

// A client's data connection to the brick: one-sided operations and flushes, each waited for. Any failure
// ends it.
class BrickLink {
 public:
  // Null if the brick does not let us in.
  static std::unique_ptr<BrickLink> connect(System& system, const nfs4::DeviceAddress& device);
  ~BrickLink();

  const initiator::Hello& hello() const { return hello_; }

  bool write(ByteSpan source, rdma::RemoteSlice target);
  bool read(MutableByteSpan sink, rdma::RemoteSlice source);
  // RDMA FLUSH where the connection has it, else as persist().
  bool flush(rdma::RemoteSlice target, const brick::PersistTarget& range);
  // The commit message.
  bool persist(const brick::PersistTarget& range);

 private:
  static constexpr size_t kBounce = size_t{1} << 20;
  explicit BrickLink(System& system);
  Result<> open(const nfs4::DeviceAddress& device);
  // Until work request `id` and, if `reply`, an answer to it are there.
  bool wait(uint64_t id, brick::PersistReply* reply = nullptr);

  System& system_;
  initiator::TransportDomain domain_;
  std::unique_ptr<initiator::MessageArea> area_;
  std::unique_ptr<initiator::Buffer> bounce_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  initiator::Hello hello_;
  uint64_t next_id_ = 2;  // even: odd ones are receives
};

}  // namespace pnfsrdma::crash

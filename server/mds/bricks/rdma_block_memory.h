// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/mds/bricks/block_memory.h"
#include "server/mds/bricks/brick_device.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/sync.h"
#include "shared/initiator/brick/device_path.h"
#include "shared/initiator/brick/message_area.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::mds {

// The MDS as one more initiator: a session and a queue pair of its own at the brick, blocks exposed to it
// when they are first touched and cached, least recently used out first. The queue pair is driven from the
// control loop by its fd; only connecting, which blocks, happens on a thread of its own. When the connection
// ends, every exposure is withdrawn and recreated on the next one, and what was in flight is repeated:
// reads and writes of the same bytes under the same turn may be repeated.
class RdmaBlockMemory final : public BlockMemory {
 public:
  // Transports in order of preference; TransportDomain::domain may be null, one is made.
  RdmaBlockMemory(EventLoop& loop, BrickDevice& brick, std::vector<initiator::TransportDomain> transports);
  ~RdmaBlockMemory() override;
  RdmaBlockMemory(const RdmaBlockMemory&) = delete;
  RdmaBlockMemory& operator=(const RdmaBlockMemory&) = delete;

  void read(uint64_t logical, MutableByteSpan sink, std::shared_ptr<void> keep, Done done) override;
  void write(uint64_t logical, ByteSpan source, std::shared_ptr<const void> keep, Done done) override;
  void forget(const std::vector<brick::Range>& ranges, std::function<void()> done) override;
  void reset() override;
  // The thread that connects, if there is one: for an owner that destroys this object and cannot wait for a
  // brick that does not answer. It ends within kConnectPatience and touches nothing of this object.
  Thread give_up_connecting() { return std::exchange(connector_, {}); }

 private:
  // One read() or write(): pieces of it, one per block.
  struct Operation {
    bool writes = false;
    std::shared_ptr<const void> keep;
    std::unique_ptr<rdma::Region> region;  // the caller's memory; belongs to `domain_link`
    MutableByteSpan memory;
    uint64_t domain_link = 0;
    size_t pieces_left = 0;
    bool good = true;
    Done done;
  };
  struct Piece {
    std::shared_ptr<Operation> operation;
    size_t at = 0;  // in the operation's memory
    uint32_t length = 0;
    uint64_t block = 0;  // logical address of its block
    uint32_t offset = 0;
    uint32_t attempts = 0;
  };
  struct Exposure {
    bool ready = false;
    uint64_t number = 0;  // tells the answer for this exposure from one for its predecessor
    uint64_t grant = 0;
    rdma::RemoteSlice memory;
    uint32_t in_flight = 0;
    std::vector<Piece> waiting;
    std::list<uint64_t>::iterator recent;
  };
  struct Link;  // what the connecting thread brings home

  void start(bool writes, uint64_t logical, MutableByteSpan memory, std::shared_ptr<const void> keep,
             Done done);
  void pump();
  void submit_later();
  bool post(Piece& piece, Exposure& exposure);
  void finish(const Piece& piece, bool moved);
  void again(Piece piece);

  void connect();
  void connect_with(const Ticket& ticket);
  void connected(Result<std::unique_ptr<Link>> link);
  void on_readable();
  void disconnect();
  void fail_all();

  void expose(uint64_t block);
  void exposed(uint64_t block, uint64_t number, BrickDevice::Answer<brick::ExposeResult> answer);
  void evict();
  void withdraw_all();

  EventLoop& loop_;
  BrickDevice& brick_;
  std::vector<initiator::TransportDomain> transports_;
  std::unique_ptr<Link> link_;
  uint64_t link_number_ = 0;
  bool connecting_ = false;
  Thread connector_;
  std::deque<Piece> ready_;  // to be posted, or exposed first
  std::unordered_map<uint64_t, Piece> in_flight_;
  uint64_t next_work_ = 1;
  uint64_t next_exposure_ = 1;
  std::map<uint64_t, Exposure> exposures_;  // by logical address of the block
  std::list<uint64_t> recent_;              // blocks, most recently used first
  bool pumping_ = false;
  bool submitting_ = false;  // at the end of this turn
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

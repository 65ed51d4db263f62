// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/mds/bricks/block_memory.h"
#include "server/mds/bricks/brick_connection.h"
#include "tests/sim/courier.h"
#include "tests/sim/served_brick.h"

namespace pnfsrdma::sim {

// The way of one process of the MDS to its bricks: control connections that come, go and take their time, and
// the handles by which it reads and writes their memory itself. What was under way when the process dies arrives
// all the same; nothing comes back.
class BrickControls final : public mds::BlockMemory {
 public:
  BrickControls(EventLoop& loop, std::vector<ServedBrick*> bricks, uint64_t seed);
  ~BrickControls() override;

  mds::ConnectBrick connector();
  // The brick's process has ended, or is there again.
  void changed(size_t brick);

  // --- BlockMemory
  void read(uint64_t logical, MutableByteSpan sink, std::shared_ptr<void> keep, Done done) override;
  void write(uint64_t logical, ByteSpan source, std::shared_ptr<const void> keep, Done done) override;
  void forget(const std::vector<brick::Range>& ranges, std::function<void()> done) override;
  void reset() override {}

 private:
  class Way;
  Way& way_to(uint64_t logical);

  EventLoop& loop_;
  std::vector<std::shared_ptr<Way>> ways_;
};

}  // namespace pnfsrdma::sim

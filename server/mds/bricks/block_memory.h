// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::mds {

// Brick memory by logical address, as the MDS itself reads and writes it. Asynchronous; control loop only.
// `done` is called once, with whether all bytes were moved. `keep` holds the caller's memory until then. A
// write is *placed* when it is done, not durable: that takes BrickDevice::persist().
class BlockMemory {
 public:
  using Done = std::function<void(bool moved)>;
  virtual ~BlockMemory() = default;

  // [logical, logical + span.size()) lies in blocks that stay allocated until `done`.
  virtual void read(uint64_t logical, MutableByteSpan sink, std::shared_ptr<void> keep, Done done) = 0;
  virtual void write(uint64_t logical, ByteSpan source, std::shared_ptr<const void> keep, Done done) = 0;

  // Nothing of `ranges` is exposed to us any more when `done` runs: before blocks are freed.
  virtual void forget(const std::vector<brick::Range>& ranges, std::function<void()> done) = 0;
  // The brick was lost, and every grant with it.
  virtual void reset() = 0;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/mds/layout/conflicts.h"
#include "server/mds/layout/recaller.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/space.h"
#include "server/mds/ops/data_operations.h"
#include "server/mds/state/counters.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"
#include "shared/brick/control.h"
#include "shared/initiator/buffer.h"

namespace pnfsrdma::mds {

class BlockMemory;
class FileIo;
class LayoutCommitter;
class LayoutGranter;
class LayoutTable;
class Layouts;

// The parts around one brick, wired: what main() builds, and what tests build around a fake one. Belongs to
// the loop's thread; everything named here outlives it.
//
//   brick::BrickClient client(loop, options, {.on_connected = [&] { layouts.brick_connected(); },
//                                             .on_lost = [&](const Error&) { layouts.brick_lost(); }});
class LayoutModule {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    Random& random;
    Namespace& names;
    Space& space;
    brick::Control& brick;
    LayoutRecaller& recaller;
    Counters& counters;
  };
  struct Options {
    uint64_t first_epoch = 1;  // BootRecord::epoch: no claim is lower
    std::string owner;         // shown to administrators of the brick
    Milliseconds lease{30'000};
    uint64_t metadata_era = 0;  // BootRecord::era: part of writeverf4
    // How we reach the brick's memory ourselves, best first.
    std::vector<initiator::TransportDomain> transports;
    // Instead of that, for tests.
    BlockMemory* memory = nullptr;
    // Another MDS has claimed the brick: this one must end. Default: only logged.
    std::function<void(const std::string& why)> on_fenced;
  };

  LayoutModule(const Parts& parts, Options options);
  ~LayoutModule();
  LayoutModule(const LayoutModule&) = delete;
  LayoutModule& operator=(const LayoutModule&) = delete;

  LayoutConflicts& conflicts();
  DataOperations& data();

  // The parts behind data(), for whoever needs no COMPOUND around them.
  Layouts& layouts();
  LayoutGranter& granter();
  LayoutCommitter& committer();
  FileIo& io();
  const LayoutTable& table() const;

  // From the connection to the brick.
  void brick_connected();
  void brick_lost();
  // All layouts, allocation and I/O through the server work; until then they are put off.
  bool ready() const;

 private:
  struct Machinery;
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/mds/bricks/brick_connection.h"
#include "server/mds/meta/brick_list.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/ops/data_operations.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/recaller.h"
#include "shared/base/event_loop.h"
#include "shared/base/random.h"
#include "shared/initiator/brick/buffer.h"

namespace pnfsrdma::mds {

class BlockMemory;
class BrickAdministration;
class BrickSet;
class FileIo;
class FileClone;
class FileCopy;
class FileRanges;
class LayoutCommitter;
class LayoutGranter;
class LayoutTable;
class Layouts;
class PathReports;
class SnapshotKeeper;

// The parts around the bricks, wired: what main() builds, and what tests build around fake ones. Belongs to
// the loop's thread; everything named here outlives it.
class DataPlane {
 public:
  struct Parts {
    EventLoop& loop;
    const Clock& clock;
    Random& random;
    Namespace& names;
    BrickList& list;
    ConnectBrick connect;
    LayoutRecaller& recaller;
    Counters& counters;
  };
  struct Options {
    uint64_t first_epoch = 1;  // BootRecord::epoch: no claim is lower
    std::string owner;         // this server's name on its bricks: it claims none of another owner
    Milliseconds lease{30'000};
    Milliseconds brick_patience{30'000};  // BrickDevice::Options
    uint64_t metadata_era = 0;            // BootRecord::era: part of writeverf4
    // How we reach the bricks' memory ourselves, best first.
    std::vector<initiator::TransportDomain> transports;
    // Instead of that, for tests.
    BlockMemory* memory = nullptr;
    size_t clone_slice = 0;  // likewise, of FileClone
    // Another MDS with our name has claimed a brick: this one must end. Default: only logged.
    std::function<void(const std::string& why)> on_fenced;
  };

  DataPlane(const Parts& parts, Options options);
  ~DataPlane();
  DataPlane(const DataPlane&) = delete;
  DataPlane& operator=(const DataPlane&) = delete;

  // Takes the layouts of the run before over, of clients that are still known: behind recover_state(), before the
  // loop runs. `run`: BootRecord::boot_count. Without this call they are closed at the bricks. Blocks.
  Result<> recover(uint64_t run, const std::function<bool(uint64_t client)>& knows);

  LayoutConflicts& conflicts();
  DataOperations& data();

  // The parts behind data(), for whoever needs no COMPOUND around them.
  Layouts& layouts();
  LayoutGranter& granter();
  LayoutCommitter& committer();
  FileIo& io();
  FileRanges& ranges();
  FileCopy& copies();
  FileClone& clones();
  SnapshotKeeper& snapshots();
  const LayoutTable& table() const;
  const PathReports& paths() const;

  BrickSet& bricks();
  BrickAdministration& brick_administration();
  // Every brick is there: all layouts, allocation and I/O through the server work.
  bool ready() const;

 private:
  struct Machinery;
  std::unique_ptr<Machinery> machinery_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/initiator/brick/buffer.h"
#include "shared/initiator/brick/fabric.h"
#include "shared/initiator/file/hole_trust.h"
#include "shared/initiator/file/kept_memory.h"
#include "shared/initiator/file/lost_stateids.h"
#include "shared/initiator/file/unstable_memory.h"
#include "shared/initiator/mds.h"

namespace pnfsrdma::initiator {

class Background;
class DeviceTable;
class Watching;

// What holds for the layouts of all files. Thread-safe as each part is.
struct MountLayouts {
  MountLayouts(const Mds& mds, const Clock& clock) : holes(mds, clock) {}

  // Counts DataPath::layouts_lost(): what was granted before is void.
  std::atomic<uint64_t> epoch = 1;
  // Counts the sessions: whether the server still has what it took before is to be asked.
  std::atomic<uint64_t> session = 1;
  // Recalls of all layouts that are under way: nobody asks for one meanwhile.
  std::atomic<int> bulk_recalls = 0;
  // PendingLayouts alive.
  std::atomic<int> pending = 0;
  LostStateids lost;
  HoleTrust holes;
};

// What the log has been told, and is not told again.
struct Told {
  std::atomic<bool> layout_refused = false;
  std::atomic<bool> room_short = false;
  // A device of the server has less memory than the mount requires.
  std::atomic<bool> server_too_weak = false;
};

// What a file is built with: all of it is there before the first file does anything, and lives longer than
// the last one. A value; only constructors take it apart.
struct Mount {
  Fabric& fabric;
  Mds& mds;
  MountLayouts& layouts;
  Told& told;
  KeptMemory& kept_memory;
  UnstableMemory& unstable_memory;
  DeviceTable& devices;
  BufferPool& buffers;
  Background& background;
  // Gives back closed files and flushes: the bricks may be silent, the others go on.
  Background& closing;
  Watching& watching;
};

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "shared/base/burial.h"
#include "shared/base/clock.h"
#include "shared/initiator/buffer.h"
#include "shared/initiator/data_path_options.h"
#include "shared/initiator/kept_memory.h"
#include "shared/initiator/lost_stateids.h"
#include "shared/initiator/metadata_channel.h"
#include "shared/initiator/statistics.h"

namespace pnfsrdma::initiator {

class Background;
class DeviceTable;
class FileTable;

// What the parts of one data path share. Owned by DataPath; lives longer than all of them. Thread-safe as
// each part is.
struct Services {
  MetadataChannel& channel;
  const Clock& clock;
  const DataPathOptions options;
  const std::vector<TransportDomain> transports;
  Statistics statistics;
  std::atomic<bool> aborted = false;
  // Counts layouts_lost(): what was granted before is void.
  std::atomic<uint64_t> layout_epoch = 1;
  // PendingLayouts alive.
  std::atomic<int> pending_layouts = 0;
  // fsyncs that wait for a brick which does not say its verifier.
  std::atomic<int> patient_flushes = 0;
  // The first refused LAYOUTGET has been logged.
  std::atomic<bool> refusal_logged = false;
  // The MDS has said that a device of its has less memory than the mount requires.
  std::atomic<bool> server_too_weak = false;
  DeviceTable* devices = nullptr;
  FileTable* files = nullptr;
  Background* background = nullptr;
  Background* closing = nullptr;  // gives back closed files: their bricks may be silent, the others go on
  Burial* burial = nullptr;       // of connections: no worker waits for a device to give one up
  BufferPool* buffers = nullptr;
  KeptMemory kept_memory{options.kept_bytes_max};
  LostStateids lost_layouts;
  // A task that commits the growth of all files waits in the background.
  std::atomic<bool> commit_growth_posted = false;

  SteadyTime now() const { return clock.now(); }
  SteadyTime io_deadline() const { return now() + options.io_timeout; }
};

}  // namespace pnfsrdma::initiator

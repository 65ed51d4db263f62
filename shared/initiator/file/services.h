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
class FileTable;

// What the files of one data path share. Owned by DataPath; lives longer than all of them. Thread-safe as
// each part is.
struct Services : Fabric {
  Services(Mds& server, const Clock& time, const DataPathOptions& how, std::vector<TransportDomain> domains,
           DeferredDestruction& ends)
      : Fabric{.clock = time,
               .options = how,
               .transports = std::move(domains),
               .address_of = [&server](const nfs4::DeviceId& id) { return address_of_device(server, id); },
               .destruction = ends},
        mds(server) {}

  Mds& mds;
  // Counts layouts_lost(): what was granted before is void.
  std::atomic<uint64_t> layout_epoch = 1;
  // Recalls of all layouts that are under way: nobody asks for one meanwhile.
  std::atomic<int> bulk_recalls = 0;
  // PendingLayouts alive.
  std::atomic<int> pending_layouts = 0;
  // The first refused LAYOUTGET has been logged.
  std::atomic<bool> refusal_logged = false;
  // The MDS has said that a device of its has less memory than the mount requires.
  std::atomic<bool> server_too_weak = false;
  DeviceTable* devices = nullptr;
  FileTable* files = nullptr;
  Background* background = nullptr;
  Background* closing =
      nullptr;  // gives back closed files and flushes: the bricks may be silent, the others go on
  BufferPool* buffers = nullptr;
  KeptMemory kept_memory{options.kept_bytes_max};
  std::atomic<bool> room_shortage_logged = false;
  UnstableMemory unstable_memory{options.unstable_bytes_max};
  // A task that flushes what is kept there waits in the background.
  std::atomic<bool> unstable_flush_posted = false;
  LostStateids lost_layouts;
  HoleTrust holes{mds, clock};
  // A task that commits the growth of all files waits in the background.
  std::atomic<bool> commit_growth_posted = false;

 private:
  static Result<nfs4::DeviceAddress> address_of_device(Mds& mds, const nfs4::DeviceId& id) {
    auto asked = mds.get_device_info(id);
    if (!asked) return fail(asked.error().to_errno(), "GETDEVICEINFO of " + to_hex(id));
    return *std::move(asked);
  }
};

}  // namespace pnfsrdma::initiator

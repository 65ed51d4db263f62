// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>

#include "shared/base/sync.h"
#include "shared/initiator/file/dirty_list.h"
#include "shared/initiator/file/exclusion.h"
#include "shared/initiator/file/kept_writes.h"
#include "shared/initiator/file/layout_activity.h"
#include "shared/initiator/file/layout_cache.h"
#include "shared/initiator/file/mount.h"
#include "shared/initiator/file/open_state.h"
#include "shared/initiator/file/patience.h"

namespace pnfsrdma::initiator {

// Fresh stateids are asked for this often.
inline constexpr int kStateidTries = 3;

// What everything that works on one file shares: its models, each thread-safe by itself, and under which open
// it is spoken of. It decides nothing and calls nobody, but for drain(). Owned by a shared_ptr, which tasks that
// outlive a call hold, too.
class FileState : public std::enable_shared_from_this<FileState> {
 public:
  FileState(const Mount& mount, nfs4::FileHandle file, uint64_t size)
      : fabric(mount.fabric),
        mds(mount.mds),
        layouts(mount.layouts),
        handle(std::move(file)),
        patience(mount.fabric),
        cache(&mount.layouts.lost, &mount.layouts.holes),
        dirty(size),
        kept(mount.kept_memory) {}

  // None: nobody has it open.
  void set_source(OpenStateSource* source);
  bool is_open();
  // The file in the name of whoever has it open, or had last. `open`: whether it is open that way; then
  // `open_stateid` is that of the open.
  FileReference reference(bool for_write, nfs4::Stateid* open_stateid = nullptr, bool* open = nullptr);

  // The server does not know `refused`, which reference() gave for an open: from here on that gives another one,
  // if the file can be opened again. Whether the call is to be sent again: not after kStateidTries in the name of
  // an open of now, which `tries` counts from 0, nor when locks of the file were lost with it. One that was
  // closed, or made good for somebody else, while the call travelled does not count: it says nothing of the others.
  bool renew_open(bool for_write, const nfs4::Stateid& refused, int& tries);

  bool growth_void() const { return kept.any() && dirty.growth_void(cache.incarnation()); }
  // The session is another one than when it was written: the server may be, too, and a reader would see older
  // bytes. Or it has not been sent yet.
  bool unstable_in_doubt() const {
    return dirty.keeps_copies() && (dirty.holds() || unstable_session != layouts.session);
  }
  // What is written may stay here until it is flushed.
  bool may_hold();
  // What is sent of that, under the delegation by which it was held; false: it is not there any more.
  bool held_reference(FileReference& file, nfs4::Stateid& stateid);
  // As applications are shown it: what is to be written again belongs to the file.
  uint64_t size() const { return std::max(dirty.size(), unstable_in_doubt() ? dirty.copied_end() : 0); }
  // Something was done by its layouts that the server has not been told, and is to be.
  bool tells_activity() const { return fabric.options.activity_distance > Milliseconds(0) && activity.any(); }
  // LayoutCache::drain(), and polls meanwhile: I/O that nobody waits for leaves the gate in no other way.
  bool drain(FileRange range, SteadyTime deadline, bool with_flushes = true);
  // They are no growth any more.
  void forget_copies(std::span<const FileRange> ranges);

  Fabric& fabric;
  Mds& mds;
  MountLayouts& layouts;
  const nfs4::FileHandle handle;
  const Patience patience;
  LayoutCache cache;
  DirtyList dirty;
  KeptWrites kept;
  LayoutActivity activity;
  // WRITEs through the MDS and truncations are inside; whoever writes again what the MDS has lost is alone.
  Exclusion mds_writes;
  // MountLayouts::epoch under which the copies were last known to be of this server.
  std::atomic<uint64_t> unstable_session{0};
  uint64_t closed_serial = 0;  // FileTable's: which file was closed first

 private:
  Mutex source_mutex_;
  OpenStateSource* source_ = nullptr;
  Credential last_credential_;
};

}  // namespace pnfsrdma::initiator

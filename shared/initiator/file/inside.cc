// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/inside.h"

#include <utility>

namespace pnfsrdma::initiator {

FileInside::FileInside(const Mount& what, AllFiles& all, nfs4::FileHandle file, uint64_t size)
    : FileState(what, std::move(file), size),
      barrier(*this,
              [this] {
                if (!committer.commit_now()) committer.void_growth();
              }),
      through_mds(*this, what.unstable_memory, all, what.told),
      restorer(*this, barrier, through_mds, what.buffers),
      committer(*this, restorer, what.background),
      growth_room(*this, committer, what.kept_memory, all, what.told),
      verifiers(*this),
      brick_flusher(*this, verifiers, committer, through_mds),
      flusher(*this, brick_flusher, through_mds, restorer, committer, what.closing),
      file_sync(*this, committer, flusher, through_mds),
      returner(*this, barrier, through_mds, committer, flusher),
      truncater(*this, committer, returner),
      layout_getter(*this, what.devices, what.background, what.told),
      brick_io(*this, flusher),
      transfer(*this, barrier, through_mds, committer, growth_room, flusher, layout_getter, brick_io),
      words(*this, committer, flusher, layout_getter),
      read_back(*this, layout_getter),
      watcher(*this, layout_getter, what.watching),
      signals(*this, file_sync, layout_getter),
      all_files(all),
      mount(what) {}

}  // namespace pnfsrdma::initiator

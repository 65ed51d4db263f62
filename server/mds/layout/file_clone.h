// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "server/mds/layout/layouts.h"
#include "server/mds/layout/range_persister.h"
#include "shared/base/lifetime.h"

namespace pnfsrdma::mds {

// The bytes of a file in another one, or in another place of the same one, without a copy (RFC 7862, 15.13): both have
// the same memory until either is written. All or nothing, in one batch. Control loop only.
//
// Under the exclusive turns of both files: whoever may write to the source gives that back, whoever reaches the target
// gives it back; then the source is durable, for who clones has no verifier to find out that it was not. A source in a
// snapshot has no writers; its turn keeps the snapshot until the clone is there.
class FileClone {
 public:
  struct What {
    uint64_t client = 0;  // who asks
    uint64_t source = 0;
    uint64_t source_offset = 0;
    uint64_t target = 0;
    uint64_t target_offset = 0;
    uint64_t count = 0;        // 0: to the end of the source
    bool clear_setid = false;  // of the target: the writer is not privileged
    size_t slice = 0;          // FileSpace::Clone; 0: as usual
  };
  using Done = std::function<void(nfs4::Status)>;

  // `slice`: FileSpace::Clone's, as usual; 0: the default one.
  FileClone(EventLoop& loop, const Clock& clock, Namespace& names, BrickSet& bricks, FileSpace& space,
            InodeQueue& queue, Layouts& layouts, size_t slice = 0);
  FileClone(const FileClone&) = delete;
  FileClone& operator=(const FileClone&) = delete;

  // INVAL: not whole grains (but for the end of the source, where the target may end too), beyond the end of the
  // source, or onto itself. FBIG: too large, or in too many pieces onto bytes that are there. XDEV: on a brick that
  // is being drained. NOSPC: of the metadata. DELAY, IO, STALE.
  void clone(const What& what, Done done);

 private:
  struct Cloning;
  using CloningPointer = std::shared_ptr<Cloning>;
  // What is cloned, as the files are now.
  struct Place {
    ByteRange source;
    ByteRange target;
    uint64_t source_size = 0;
    uint64_t target_size = 0;
  };

  void take_turns(const CloningPointer& work);
  void take_higher_turn(const CloningPointer& work);
  void stop_writers(const CloningPointer& work);
  void find_place(const CloningPointer& work);
  Outcome<Place> place(const What& what);
  void when_present(const CloningPointer& work, const Place& place);
  void clear_target(const CloningPointer& work, const Place& place);
  void clear_end(const CloningPointer& work, const Place& place);
  void clean_tails(const CloningPointer& work, const Place& place);
  void clean_target(const CloningPointer& work, const Place& place);
  void make_durable(const CloningPointer& work, const Place& place);
  void share(const CloningPointer& work, const Place& place);
  static void finish(const CloningPointer& work, nfs4::Status status);

  EventLoop& loop_;
  const Clock& clock_;
  Namespace& names_;
  FileSpace& space_;
  InodeQueue& queue_;
  Layouts& layouts_;
  RangePersister persister_;
  const size_t slice_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

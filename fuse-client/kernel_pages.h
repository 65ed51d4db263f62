// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "fuse-client/inode.h"
#include "fuse-client/invalidator.h"
#include "fuse-client/page_watch.h"

namespace pnfsrdma::fuse_client {

// The kernel's page cache of this mount. Where it keeps pages until it is told (FUSE_EXPLICIT_INVAL_DATA), every
// answer of the server about a file comes by here, and those that show another host's change make the kernel
// forget the file's pages before it hears of them: a page that lies across the old end of the file would have
// zeros where the other host has appended. Otherwise the kernel goes by the modification time, and there is
// nothing to do here. Thread-safe.
class KernelPages {
 public:
  KernelPages(Invalidator& invalidator, const Clock& clock) : invalidator_(invalidator), clock_(clock) {}

  // Who asks for the files behind the pages. Once, before the mount.
  void watched_by(PageWatch& watch) { watch_ = &watch; }
  // The kernel keeps them until it is told. Before the first request.
  void keep() { kept_ = true; }
  bool are_kept() const { return kept_; }

  // A request for pages, before it is served.
  void hand_out(const std::shared_ptr<Inode>& inode) {
    if (kept_ && inode->pages.hand_out()) watch_->add(inode);
  }
  // The file has been opened, and may have pages from before.
  void opened(const std::shared_ptr<Inode>& inode) {
    if (kept_ && inode->pages.handed_out()) watch_->add(inode);
  }
  // The kernel has written, and is answered next: it may hold the pages, so it cannot be waited for.
  void written(const std::shared_ptr<Inode>& inode, uint64_t offset, uint64_t end);

  // True: the kernel must forget pages before it is told this.
  bool outdated_by(Inode& inode, const PageAnswer& answer) const {
    return kept_ && inode.pages.outdated_by(answer, clock_.now());
  }
  // An answer that the kernel is not told, or need not wait for. False: `done` is called later, when the kernel
  // has forgotten what it outdates.
  bool look(const std::shared_ptr<Inode>& inode, const PageAnswer& answer, Invalidator::Done done = nullptr) {
    if (!outdated_by(*inode, answer)) return true;
    drop(inode, answer, std::move(done));
    return false;
  }
  // `tell`, which tells the kernel, is called at once where the answer outdates nothing. Else `tell_behind`, by a
  // thread of the Invalidator, when the kernel has forgotten its pages: no worker waits for that, for pages may
  // wait for workers. What the kernel is told behind it passes on to who has asked, but does not take for its own:
  // its question is older than the forgetting. It asks again.
  template <typename Tell, typename TellBehind>
  void when_current(const std::shared_ptr<Inode>& inode, const PageAnswer& answer, Tell tell,
                    TellBehind tell_behind) {
    if (outdated_by(*inode, answer)) return drop(inode, answer, std::move(tell_behind));
    inode->pages.told(answer.size);
    tell();
  }
  template <typename Tell>
  void when_current(const std::shared_ptr<Inode>& inode, const PageAnswer& answer, Tell tell) {
    when_current(inode, answer, tell, tell);
  }
  // The kernel has put bytes on the wrong pages, which it still holds.
  void misplaced(const std::shared_ptr<Inode>& inode) { drop_in_doubt(inode); }
  // Something that was written has failed.
  void lost(const std::shared_ptr<Inode>& inode) {
    if (kept_) drop_in_doubt(inode);
  }
  // What passed the pages by has changed this: `tell` is called when the kernel has forgotten what it read of it
  // meanwhile.
  template <typename Tell>
  void when_forgotten(const std::shared_ptr<Inode>& inode, uint64_t offset, uint64_t length, Tell tell) {
    if (kept_ && length > 0 && inode->pages.may_be_there()) {
      invalidator_.pages(inode->node, offset, length, std::move(tell));
    } else {
      tell();
    }
  }
  // Nobody can say whether they are the file's.
  void drop_in_doubt(const std::shared_ptr<Inode>& inode);

 private:
  void drop(const std::shared_ptr<Inode>& inode, const PageAnswer& answer, Invalidator::Done done);

  Invalidator& invalidator_;
  const Clock& clock_;
  PageWatch* watch_ = nullptr;
  std::atomic<bool> kept_ = false;
};

}  // namespace pnfsrdma::fuse_client

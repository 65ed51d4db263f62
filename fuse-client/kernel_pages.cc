// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/kernel_pages.h"

namespace pnfsrdma::fuse_client {

void KernelPages::written(const std::shared_ptr<Inode>& inode, uint64_t offset, uint64_t end) {
  if (kept_ && inode->pages.written(offset, end)) drop_in_doubt(inode);
}

void KernelPages::drop(const std::shared_ptr<Inode>& inode, const PageAnswer& answer,
                       Invalidator::Done done) {
  inode->pages.begin_drop();
  invalidator_.pages(inode->node, [this, inode, answer, done = std::move(done)] {
    inode->pages.end_drop(answer, clock_.now());
    if (done) done();
  });
}

void KernelPages::drop_in_doubt(const std::shared_ptr<Inode>& inode) {
  const SteadyTime begun = clock_.now();
  inode->pages.begin_drop_in_doubt();
  invalidator_.pages(inode->node, [inode, begun] { inode->pages.end_drop_in_doubt(begun); });
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/id_walk.h"

#include <utility>

namespace pnfsrdma::mds {

namespace {

class IdWalk : public std::enable_shared_from_this<IdWalk> {
 public:
  IdWalk(EventLoop& loop, std::vector<uint64_t> ids, std::weak_ptr<const void> alive,
         std::function<void(uint64_t)> visit, std::function<void()> done)
      : loop_(loop),
        ids_(std::move(ids)),
        alive_(std::move(alive)),
        visit_(std::move(visit)),
        done_(std::move(done)) {}

  void go_on() {
    if (alive_.expired()) return;
    const EventLoop::Step step(loop_, "id-walk");
    for (size_t i = 0; i < kIdsPerTurn && next_ < ids_.size(); ++i) visit_(ids_[next_++]);
    if (next_ == ids_.size()) return done_();
    loop_.at_next_turn([self = shared_from_this()] { self->go_on(); });
  }

 private:
  EventLoop& loop_;
  const std::vector<uint64_t> ids_;
  size_t next_ = 0;
  const std::weak_ptr<const void> alive_;
  const std::function<void(uint64_t)> visit_;
  const std::function<void()> done_;
};

}  // namespace

void walk_ids(EventLoop& loop, std::vector<uint64_t> ids, std::weak_ptr<const void> alive,
              std::function<void(uint64_t)> visit, std::function<void()> done) {
  std::make_shared<IdWalk>(loop, std::move(ids), std::move(alive), std::move(visit), std::move(done))
      ->go_on();
}

}  // namespace pnfsrdma::mds

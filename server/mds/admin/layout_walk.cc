// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/layout_walk.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace pnfsrdma::mds {

namespace {

class LayoutWalk : public std::enable_shared_from_this<LayoutWalk> {
 public:
  LayoutWalk(EventLoop& loop, const LayoutTable& table, uint64_t client, std::weak_ptr<const void> alive,
             std::function<void(const HeldLayout&)> visit, std::function<void()> done, size_t per_turn)
      : loop_(loop),
        table_(table),
        alive_(std::move(alive)),
        clients_(client != 0 ? std::vector<uint64_t>{client} : table.clients()),
        visit_(std::move(visit)),
        done_(std::move(done)),
        per_turn_(per_turn) {}

  void go_on() {
    if (alive_.expired()) return;
    const EventLoop::Step step(loop_, "layout-walk");
    size_t left = per_turn_;
    while (left > 0 && !clients_.empty()) left -= std::min(left, visit_some(left));
    if (clients_.empty()) return done_();
    loop_.at_next_turn([self = shared_from_this()] { self->go_on(); });
  }

 private:
  // Of the last client, as many as count for `most`; what they count for, more than that at the last one's end. A
  // client without layouts counts as one.
  size_t visit_some(size_t most) {
    const uint64_t client = clients_.back();
    const std::vector<uint64_t> files = table_.files_of_client(client, most, file_);
    size_t counted = 0;
    for (const uint64_t file : files) {
      if (counted >= most) return counted;
      file_ = file;
      ++counted;
      const HeldLayout* const layout = table_.find(file, client);
      if (layout == nullptr) continue;
      counted += layout->grants().size() / kGrantsAsOneLayout;
      visit_(*layout);
    }
    if (files.size() < most) {
      clients_.pop_back();
      file_ = 0;
    }
    return std::max<size_t>(counted, 1);
  }

  EventLoop& loop_;
  const LayoutTable& table_;
  const std::weak_ptr<const void> alive_;
  std::vector<uint64_t> clients_;
  uint64_t file_ = 0;  // of the last client: those up to here have been visited
  const std::function<void(const HeldLayout&)> visit_;
  const std::function<void()> done_;
  const size_t per_turn_;
};

}  // namespace

void walk_layouts(EventLoop& loop, const LayoutTable& table, uint64_t client, std::weak_ptr<const void> alive,
                  std::function<void(const HeldLayout&)> visit, std::function<void()> done, size_t per_turn) {
  std::make_shared<LayoutWalk>(loop, table, client, std::move(alive), std::move(visit), std::move(done),
                               per_turn)
      ->go_on();
}

}  // namespace pnfsrdma::mds

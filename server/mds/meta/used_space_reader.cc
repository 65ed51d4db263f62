// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/used_space_reader.h"

#include <utility>

namespace pnfsrdma::mds {

UsedSpaceReader::UsedSpaceReader(EventLoop& loop, std::unique_ptr<KeyValueStore> store,
                                 std::vector<BrickNumber> by_zone, Done done)
    : store_(std::move(store)) {
  // `done` and what it refers to stay with the loop.
  auto arrived = lifetime_.guard([done = std::make_shared<Done>(std::move(done))](Result<UsedSpace>& used) {
    (*done)(std::move(used));
  });
  thread_ = Thread([this, &loop, by_zone = std::move(by_zone), arrived] {
    auto used = std::make_shared<Result<UsedSpace>>(
        read_used_space(*store_, by_zone, [this] { return stopped_.load(std::memory_order_relaxed); }));
    loop.post([arrived, used] { arrived(*used); });
  });
}

UsedSpaceReader::~UsedSpaceReader() {
  stopped_ = true;
  thread_.join();
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/read_ahead.h"

#include <algorithm>

#include "server/brickd/pool.h"

namespace pnfsrdma::brick {

ReadAhead::ReadAhead(EventLoop& loop, const Pool& pool) : pool_(pool) {
  if (pool.mapping().medium().kind != pmem::Kind::kFile) return;
  read_.resize(pool.mapping().bytes().size() / pool.block_size() + 1);
  executor_ = std::make_unique<Executor>(loop, "brick-read");
}

void ReadAhead::granted(ByteSpan memory) {
  if (!executor_ || memory.empty()) return;
  const ByteSpan all = pool_.mapping().bytes();
  const auto begin = static_cast<uint64_t>(memory.data() - all.data());
  const uint64_t first = begin / pool_.block_size();
  const uint64_t last = (begin + memory.size() - 1) / pool_.block_size();
  for (uint64_t block = first; block <= last; ++block) {
    if (read_[block]) continue;
    read_[block] = true;
    const uint64_t at = block * pool_.block_size();
    const ByteSpan bytes = all.subspan(at, std::min<uint64_t>(pool_.block_size(), all.size() - at));
    executor_->run([this, bytes] { pool_.mapping().read_ahead(bytes); }, [] {});
  }
}

}  // namespace pnfsrdma::brick

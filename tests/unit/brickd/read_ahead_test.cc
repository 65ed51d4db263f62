// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/read_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/event_loop.h"
#include "tests/unit/brickd/pools.h"

namespace pnfsrdma::brick {
namespace {

size_t pages_in_cache(ByteSpan memory) {
  std::vector<unsigned char> pages(memory.size() / 4096);
  EXPECT_EQ(mincore(const_cast<std::byte*>(memory.data()), memory.size(), pages.data()), 0);
  return static_cast<size_t>(
      std::ranges::count_if(pages, [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(ReadAhead, BringsTheBlockOfAGrantAndNoOther) {
  SystemRandom random;
  const FilePool file(random);
  {
    const auto pool = file.open();
    std::ranges::fill(pool->block(1), std::byte{1});
    std::ranges::fill(pool->block(2), std::byte{1});
    ASSERT_TRUE(pool->persistence().persist(pool->mapping().bytes()));
  }
  const FileDescriptor fd(::open(file.path().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(fd && posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
  const auto pool = file.open();
  ASSERT_EQ(pages_in_cache(pool->block(1)), 0U);
  const SystemClock clock;
  EventLoop loop(clock);
  ReadAhead read_ahead(loop, *pool);
  read_ahead.granted(pool->block(1).subspan(4096, 10));
  const size_t all = pool->block(1).size() / 4096;
  for (int tries = 0; pages_in_cache(pool->block(1)) < all && tries < 1000; ++tries) usleep(10'000);
  EXPECT_EQ(pages_in_cache(pool->block(1)), all);
  EXPECT_EQ(pages_in_cache(pool->block(2)), 0U);
}

TEST(ReadAhead, OfAPoolInMemoryIsNothing) {
  SystemRandom random;
  const auto pool = Pool::in_memory(2, random);
  ASSERT_TRUE(pool);
  const SystemClock clock;
  EventLoop loop(clock);
  ReadAhead read_ahead(loop, **pool);
  read_ahead.granted((*pool)->block(1));
}

}  // namespace
}  // namespace pnfsrdma::brick

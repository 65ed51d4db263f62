// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/first_bytes.h"

#include <gtest/gtest.h>

#include "fuse-client/inode.h"

namespace pnfsrdma::fuse_client {
namespace {

using namespace std::chrono_literals;

TEST(FirstBytes, AreCopiedFromAnyPlaceUpToTheEnd) {
  const FirstBytes first{.bytes = {std::byte{1}, std::byte{2}, std::byte{3}}, .asked_at = {}};
  Bytes sink(8);
  EXPECT_EQ(first.copy(0, sink), 3u);
  EXPECT_EQ(sink[2], std::byte{3});
  EXPECT_EQ(first.copy(1, MutableByteSpan(sink).first(1)), 1u);
  EXPECT_EQ(sink[0], std::byte{2});
  EXPECT_FALSE(first.copy(3, sink));
}

TEST(FirstBytes, AreOldAfterAChangeAndAfterAWhile) {
  const SteadyTime start(1h);
  const AttributeTimeouts timeouts;
  Inode inode(nfs4::FileHandle(as_bytes("f")), 1);
  client::FileAttributes known;
  known.change = 5;
  known.status.st_mode = S_IFREG | 0644;
  inode.learn(known, start, timeouts, Inode::Versions{});
  const FirstBytes first{.bytes = Bytes(3), .asked_at = start, .change = 5, .data_changes = 0};
  EXPECT_TRUE(inode.is_as_read(first, start + 2999ms, timeouts));
  EXPECT_FALSE(inode.is_as_read(first, start + 3s, timeouts));
  inode.data_changes();
  EXPECT_FALSE(inode.is_as_read(first, start, timeouts));
  const FirstBytes second{
      .bytes = Bytes(3), .asked_at = start, .change = 5, .data_changes = inode.data_changes_count()};
  EXPECT_TRUE(inode.is_as_read(second, start, timeouts));
  known.change = 6;
  inode.learn(known, start + 1s, timeouts, Inode::Versions{});
  EXPECT_FALSE(inode.is_as_read(second, start + 1s, timeouts));
}

TEST(FirstReads, AreNoMoreAtATimeThanMayWaitForABrick) {
  FirstReads reads(2);
  auto one = reads.enter();
  auto other = reads.enter();
  EXPECT_TRUE(one && other);
  EXPECT_FALSE(reads.enter());
  other.reset();
  EXPECT_TRUE(reads.enter());
}

}  // namespace
}  // namespace pnfsrdma::fuse_client

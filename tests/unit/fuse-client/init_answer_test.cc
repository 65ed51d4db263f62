// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/init_answer.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <array>

namespace pnfsrdma::fuse_client {
namespace {

struct Answer {
  fuse_out_header header{};
  fuse_init_out init{};
  std::array<iovec, 2> pieces{iovec{&header, sizeof header}, iovec{&init, sizeof init}};
};

TEST(InitAnswer, AsksForTwoThingsBesideWhatLibfuseAsksFor) {
  Answer answer;
  answer.init.flags = FUSE_POSIX_LOCKS;
  answer.init.max_write = 1 << 20;
  answer.init.flags2 = 1;
  ASSERT_TRUE(add_init_flags(answer.pieces));
  EXPECT_EQ(answer.init.flags, uint32_t{FUSE_POSIX_LOCKS | FUSE_HANDLE_KILLPRIV_V2 | FUSE_INIT_EXT});
  EXPECT_EQ(answer.init.flags2, (1u << 4) | 1u);
  EXPECT_EQ(answer.init.max_write, 1u << 20);
}

TEST(InitAnswer, AnErrorAndAShortAnswerStayAsTheyAre) {
  Answer refused;
  refused.header.error = -EPROTO;
  EXPECT_FALSE(add_init_flags(refused.pieces));
  EXPECT_EQ(refused.init.flags, 0u);
  Answer old;
  old.pieces[1].iov_len = 24;
  EXPECT_FALSE(add_init_flags(old.pieces));
  EXPECT_EQ(old.init.flags, 0u);
  EXPECT_FALSE(add_init_flags(std::span(old.pieces).first(1)));
}

}  // namespace
}  // namespace pnfsrdma::fuse_client

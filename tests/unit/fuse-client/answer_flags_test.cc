// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/answer_flags.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>

#include <array>
#include <cerrno>

namespace pnfsrdma::fuse_client {
namespace {

struct Answer {
  fuse_out_header header{};
  fuse_init_out init{};
  std::array<iovec, 2> pieces{iovec{&header, sizeof header}, iovec{&init, sizeof init}};
};

TEST(AnswerFlags, AsksForTwoThingsBesideWhatLibfuseAsksFor) {
  Answer answer;
  answer.init.flags = FUSE_POSIX_LOCKS;
  answer.init.max_write = 1 << 20;
  answer.init.flags2 = 1;
  ASSERT_TRUE(add_init_flags(answer.pieces));
  EXPECT_EQ(answer.init.flags, uint32_t{FUSE_POSIX_LOCKS | FUSE_HANDLE_KILLPRIV_V2 | FUSE_INIT_EXT});
  EXPECT_EQ(answer.init.flags2, (1u << 4) | 1u);
  EXPECT_EQ(answer.init.max_write, 1u << 20);
}

TEST(AnswerFlags, AnErrorAndAShortAnswerStayAsTheyAre) {
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

struct OpenAnswer {
  fuse_out_header header{};
  struct {
    fuse_entry_out entry{};
    fuse_open_out open{};
  } created;
  fuse_open_out opened{};
};

TEST(AnswerFlags, DirectWritesOfAnOpenOrCreatedFileNeedNotWaitForEachOther) {
  OpenAnswer answer;
  answer.opened = {.fh = 7, .open_flags = FOPEN_DIRECT_IO, .padding = 0};
  answer.created.open = answer.opened;
  const std::array open{iovec{&answer.header, sizeof answer.header},
                        iovec{&answer.opened, sizeof answer.opened}};
  ASSERT_TRUE(add_direct_open_flags(open));
  EXPECT_EQ(answer.opened.open_flags, uint32_t{FOPEN_DIRECT_IO | 1 << 6});
  EXPECT_EQ(answer.opened.fh, 7u);
  const std::array created{iovec{&answer.header, sizeof answer.header},
                           iovec{&answer.created, sizeof answer.created}};
  ASSERT_TRUE(add_direct_open_flags(created));
  EXPECT_EQ(answer.created.open.open_flags, uint32_t{FOPEN_DIRECT_IO | 1 << 6});
  EXPECT_EQ(answer.created.entry.nodeid, 0u);
}

TEST(AnswerFlags, WhatIsNoOpenStaysAsItIs) {
  OpenAnswer answer;
  const std::array other{iovec{&answer.header, sizeof answer.header},
                         iovec{&answer.created.entry, sizeof answer.created.entry}};
  EXPECT_FALSE(add_direct_open_flags(other));
  answer.header.error = -EIO;
  const std::array refused{iovec{&answer.header, sizeof answer.header},
                           iovec{&answer.opened, sizeof answer.opened}};
  EXPECT_FALSE(add_direct_open_flags(refused));
  EXPECT_EQ(answer.opened.open_flags, 0u);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client

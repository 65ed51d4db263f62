// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/birth_question.h"

#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <linux/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace pnfsrdma::fuse_client {
namespace {

// FUSE_STATX as Linux 6.6 sends it.
struct Statx {
  fuse_in_header header{.len = sizeof(Statx), .opcode = 52, .unique = 9, .nodeid = 5};
  uint32_t getattr_flags = FUSE_GETATTR_FH;
  uint32_t reserved = 0;
  uint64_t fh = 77;
  uint32_t flags = 0;
  uint32_t mask = STATX_BASIC_STATS | STATX_BTIME;
};
struct AttributesAnswer {
  fuse_out_header header{.len = sizeof(fuse_out_header) + sizeof(fuse_attr_out), .error = 0, .unique = 9};
  fuse_attr_out body{};
  std::array<iovec, 2> pieces{iovec{&header, sizeof header}, iovec{&body, sizeof body}};
};

std::span<std::byte> bytes_of(Statx& message) {
  return std::as_writable_bytes(std::span(&message, 1));
}

struct StatxRead {
  fuse_out_header header;
  uint64_t valid;
  uint32_t valid_nanoseconds;
  uint32_t flags;
  uint64_t spare[2];
  struct statx stat;
};
StatxRead read(const Bytes& bytes) {
  StatxRead made{};
  EXPECT_EQ(bytes.size(), sizeof made);
  std::memcpy(&made, bytes.data(), std::min(bytes.size(), sizeof made));
  return made;
}

TEST(BirthQuestion, IsServedAsGetattrAndAnsweredAsStatx) {
  Statx message;
  BirthQuestion question(bytes_of(message));
  EXPECT_EQ(BirthQuestion::current(), &question);
  EXPECT_EQ(message.header.opcode, uint32_t{FUSE_GETATTR});
  fuse_getattr_in as_read{};
  std::memcpy(&as_read, bytes_of(message).data() + sizeof(fuse_in_header), sizeof as_read);
  EXPECT_EQ(as_read.getattr_flags, uint32_t{FUSE_GETATTR_FH});
  EXPECT_EQ(as_read.fh, 77u);

  AttributesAnswer answer;
  answer.body.attr_valid = 3;
  answer.body.attr_valid_nsec = 4;
  answer.body.attr = {.ino = 5,
                      .size = 6,
                      .blocks = 7,
                      .atime = 8,
                      .mtime = 9,
                      .ctime = 10,
                      .atimensec = 11,
                      .mtimensec = 12,
                      .ctimensec = 13,
                      .mode = 0100644,
                      .nlink = 14,
                      .uid = 15,
                      .gid = 16,
                      .rdev = 0x12345678,
                      .blksize = 4096};
  question.answer(timespec{.tv_sec = -20, .tv_nsec = 21});
  const auto sent = question.answer_from(answer.pieces);
  ASSERT_TRUE(sent);
  const StatxRead made = read(*sent);
  EXPECT_EQ(made.header.len, sizeof made);
  EXPECT_EQ(made.header.unique, 9u);
  EXPECT_EQ(made.valid, 3u);
  EXPECT_EQ(made.valid_nanoseconds, 4u);
  EXPECT_EQ(made.stat.stx_mask, unsigned{STATX_BASIC_STATS | STATX_BTIME});
  EXPECT_EQ(made.stat.stx_ino, 5u);
  EXPECT_EQ(made.stat.stx_size, 6u);
  EXPECT_EQ(made.stat.stx_blocks, 7u);
  EXPECT_EQ(made.stat.stx_atime.tv_sec, 8);
  EXPECT_EQ(made.stat.stx_mtime.tv_nsec, 12u);
  EXPECT_EQ(made.stat.stx_ctime.tv_sec, 10);
  EXPECT_EQ(made.stat.stx_mode, 0100644);
  EXPECT_EQ(made.stat.stx_nlink, 14u);
  EXPECT_EQ(made.stat.stx_uid, 15u);
  EXPECT_EQ(made.stat.stx_gid, 16u);
  EXPECT_EQ(made.stat.stx_rdev_major, 0x456u);
  EXPECT_EQ(made.stat.stx_rdev_minor, 0x12378u);
  EXPECT_EQ(made.stat.stx_btime.tv_sec, -20);
  EXPECT_EQ(made.stat.stx_btime.tv_nsec, 21u);
}

TEST(BirthQuestion, AServerWithoutBirthsSaysOfNone) {
  Statx message;
  const BirthQuestion question(bytes_of(message));
  const AttributesAnswer answer;
  const auto sent = question.answer_from(answer.pieces);
  ASSERT_TRUE(sent);
  EXPECT_EQ(read(*sent).stat.stx_mask, unsigned{STATX_BASIC_STATS});
}

TEST(BirthQuestion, ErrorsAndAnswersToOthersStayAsTheyAre) {
  Statx message;
  const BirthQuestion question(bytes_of(message));
  AttributesAnswer refused;
  refused.header.error = -ESTALE;
  EXPECT_FALSE(question.answer_from(refused.pieces));
  EXPECT_FALSE(question.answer_from(std::span(refused.pieces).first(1)));
  AttributesAnswer other;
  other.header.unique = 8;
  EXPECT_FALSE(question.answer_from(other.pieces));
}

TEST(BirthQuestion, OtherRequestsAndShortOnesAskForNone) {
  Statx other;
  other.header.opcode = FUSE_SETATTR;
  const BirthQuestion none(bytes_of(other));
  EXPECT_EQ(BirthQuestion::current(), nullptr);
  EXPECT_EQ(other.header.opcode, uint32_t{FUSE_SETATTR});
  Statx torn;
  const BirthQuestion also_none(bytes_of(torn).first(sizeof(fuse_in_header) + 8));
  EXPECT_EQ(BirthQuestion::current(), nullptr);
  EXPECT_EQ(torn.header.opcode, 52u);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client

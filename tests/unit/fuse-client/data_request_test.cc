// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/data_request.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "shared/ring/control.h"

namespace pnfsrdma::fuse_client {
namespace {

template <typename Arguments = std::array<char, 0>>
Bytes message(uint32_t opcode, const Arguments& arguments = {}) {
  const fuse_in_header header{.len = sizeof header + sizeof arguments,
                              .opcode = opcode,
                              .unique = 77,
                              .nodeid = 5,
                              .uid = 0,
                              .gid = 0,
                              .pid = 4711,
                              .total_extlen = 0,
                              .padding = 0};
  Bytes bytes(sizeof header + sizeof arguments);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, &arguments, sizeof arguments);
  return bytes;
}

TEST(DataRequest, IoNamesItsRange) {
  fuse_read_in read{};
  read.offset = 4096;
  read.size = 512;
  const auto request = data_request(message(FUSE_READ, read));
  ASSERT_TRUE(request);
  EXPECT_EQ(request->node, 5u);
  EXPECT_EQ(request->range, (initiator::FileRange{4096, 512}));
  fuse_write_in write{};
  write.offset = 8192;
  write.size = 1;
  EXPECT_EQ(data_request(message(FUSE_WRITE, write))->range, (initiator::FileRange{8192, 1}));
}

TEST(DataRequest, WhatFlushesHasNone) {
  for (const uint32_t opcode : {FUSE_SETATTR, FUSE_FLUSH, FUSE_FSYNC, FUSE_RELEASE}) {
    const auto request = data_request(message(opcode));
    ASSERT_TRUE(request) << opcode;
    EXPECT_FALSE(request->range);
  }
}

TEST(DataRequest, OfTheIoctlsAppendsAndChangedWordsMoveData) {
  fuse_ioctl_in ioctl{};
  ioctl.cmd = ring::kAppend;
  const auto request = data_request(message(FUSE_IOCTL, ioctl));
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->range);
  struct {
    fuse_ioctl_in ioctl;
    ring::ChangeWord word;
  } change{.ioctl = {}, .word = {.offset = 4096}};
  change.ioctl.cmd = ring::kChangeWord;
  const auto changes = data_request(message(FUSE_IOCTL, change));
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->range->offset, 4096u);
  EXPECT_EQ(changes->range->length, 8u);
  struct {
    fuse_ioctl_in ioctl;
    ring::Watch watch;
  } watch{.ioctl = {}, .watch = {.offset = 4096, .length = 100}};
  watch.ioctl.cmd = ring::kWatch;
  const auto watches = data_request(message(FUSE_IOCTL, watch));
  ASSERT_TRUE(watches);
  EXPECT_EQ(watches->range, (initiator::FileRange{4096, 100}));
  struct {
    fuse_ioctl_in ioctl;
    ring::Signal signal;
  } signal{.ioctl = {}, .signal = {.offset = 8192, .length = 50}};
  signal.ioctl.cmd = ring::kSignal;
  const auto signals = data_request(message(FUSE_IOCTL, signal));
  ASSERT_TRUE(signals);
  EXPECT_EQ(signals->range, (initiator::FileRange{8192, 50}));
  ioctl.cmd = ring::kAttach;
  EXPECT_FALSE(data_request(message(FUSE_IOCTL, ioctl)));
}

TEST(DataRequest, OnlyTheEndOfALockTellsTheServerWhatWasWritten) {
  fuse_lk_in lock{};
  lock.lk.type = F_UNLCK;
  EXPECT_TRUE(data_request(message(FUSE_SETLK, lock)));
  lock.lk.type = F_WRLCK;
  EXPECT_FALSE(data_request(message(FUSE_SETLKW, lock)));
}

TEST(DataRequest, NamesAndAttributesWaitForNoBrick) {
  for (const uint32_t opcode :
       {FUSE_LOOKUP, FUSE_GETATTR, FUSE_OPEN, FUSE_FORGET, FUSE_INTERRUPT, FUSE_STATFS})
    EXPECT_FALSE(data_request(message(opcode))) << opcode;
  EXPECT_FALSE(data_request({}));
}

TEST(DataRequest, IsRefusedByItsNumber) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const Bytes request = message(FUSE_FSYNC);
  EXPECT_EQ(caller_of(request), 4711);
  refuse(pipe[1], request, EINTR);
  fuse_out_header answer{};
  ASSERT_EQ(::read(pipe[0], &answer, sizeof answer), ssize_t{sizeof answer});
  EXPECT_EQ(answer.unique, 77u);
  EXPECT_EQ(answer.error, -EINTR);
  EXPECT_EQ(answer.len, sizeof answer);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client

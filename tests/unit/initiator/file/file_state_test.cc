// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/file_state.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/initiator/file/data_path_fixture.h"

namespace pnfsrdma::initiator {
namespace {

// An open whose stateid has a number; another one after it was made good.
class NumberedOpen final : public OpenStateSource {
 public:
  std::optional<OpenState> open_state(bool) override {
    OpenState state;
    state.stateid.other.fill(std::byte{number.load()});
    return state;
  }
  bool locks_lost() override { return lost; }
  std::atomic<uint8_t> number = 0;
  std::atomic<bool> lost = false;
};

// All I/O goes through the MDS, which does not know the open any more.
class DisownedOpenTest : public DataPathTest {
 protected:
  void SetUp() override {
    DataPathOptions options = quick_options();
    options.threshold_read_size = options.threshold_write_size = UINT64_MAX;
    build(options, 4096);
    for (uint64_t i = 0; i < 4096; ++i) brick.memory()[i] = pattern(i);
    file = path->open(handle, open_, 4096);
    cursor = file->error_cursor();
    channel.known_open = 1;
    channel.during_renewal = [this] { open_.number = channel.known_open.load(); };
  }
  void TearDown() override {
    DataPathTest::TearDown();
    channel.during_renewal = channel.during_write = channel.during_read = {};
  }
  int error_of(const Result<size_t>& result) { return result ? 0 : result.error().number(); }

  NumberedOpen open_;
};

TEST_F(DisownedOpenTest, AReadGoesOnUnderTheOpenThatWasMadeGood) {
  expect_read(0, 4096, 0);
  EXPECT_EQ(channel.renewals, 1);
  EXPECT_EQ(channel.reads, 2);
}

TEST_F(DisownedOpenTest, AWriteGoesOnUnderTheOpenThatWasMadeGood) {
  write(0, 4096, 1);
  EXPECT_EQ(channel.renewals, 1);
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 1));
  EXPECT_TRUE(file->fsync(cursor));
}

// Another call was answered first: the open of now is good.
TEST_F(DisownedOpenTest, WhatHasBeenMadeGoodMeanwhileIsNotMadeGoodAgain) {
  channel.during_write = [this] { open_.number = 1; };
  write(0, 4096, 1);
  EXPECT_EQ(channel.writes, 2);
  EXPECT_EQ(channel.renewals, 0);
}

// Threads that open and close the file: whichever open a call names may be closed before the call arrives. That
// says nothing of those that are open still.
TEST_F(DisownedOpenTest, OpensThatAreClosedWhileACallTravelsEndNoCall) {
  std::atomic<int> closed = 0;
  const auto close_one = [&] {
    if (++closed < 8) {
      ++open_.number;
      channel.known_open = 0xFF;
    } else {
      channel.known_open = open_.number.load();
    }
  };
  channel.during_write = channel.during_read = close_one;
  write(0, 4096, 1);
  EXPECT_EQ(channel.writes, 8);
  closed = 0;
  EXPECT_EQ(error_of(file->read(0, buffer->slice(0, 4096))), 0);
  EXPECT_EQ(channel.reads, 8);
  EXPECT_EQ(channel.renewals, 0);
}

TEST_F(DisownedOpenTest, AServerThatKnowsNoOpenOfOursIsNotAskedForEver) {
  channel.during_renewal = {};
  EXPECT_EQ(error_of(file->read(0, buffer->slice(0, 4096))), EIO);
  EXPECT_EQ(error_of(file->write(0, filled(0, 4096, 1))), EIO);
  EXPECT_LE(channel.renewals, 4);
  EXPECT_LE(channel.reads + channel.writes, 6);
}

// The file was another client's to write since.
TEST_F(DisownedOpenTest, WhereLocksWentWithTheOpenNothingIsWritten) {
  channel.during_renewal = [this] {
    open_.number = 1;
    open_.lost = true;
  };
  EXPECT_EQ(error_of(file->write(0, filled(0, 4096, 1))), EIO);
  EXPECT_EQ(channel.writes, 1);
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 0));
}

}  // namespace
}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "shared/base/log_observer.h"
#include "tests/unit/initiator/file/data_path_fixture.h"

// require_durability=persistent, while the mount lives.
namespace pnfsrdma::initiator {
namespace {

class RequirePowerTest : public DataPathTest {
 protected:
  void SetUp() override {
    options_now.require_power = true;
    channel.durability = channel.server_durability = Durability::kPower;
    make_file(4 << 20);
    observe_log([this](LogLevel, std::string_view, std::string_view text) {
      if (text.find("require_durability") != std::string_view::npos) ++said_;
    });
  }
  void TearDown() override {
    observe_log(nullptr);
    DataPathTest::TearDown();
  }
  int error_of_write(uint64_t offset) {
    const auto written = file->write(offset, filled(offset, 4096, 1));
    return written ? 0 : written.error().number();
  }
  int error_of_read(uint64_t offset) {
    const auto done = file->read(offset, buffer->slice(0, 4096));
    return done ? 0 : done.error().number();
  }
  int error_of_fsync() {
    const auto done = file->fsync(cursor);
    return done ? 0 : done.error().number();
  }

  std::atomic<int> said_ = 0;
};

TEST_F(RequirePowerTest, MemoryThatSurvivesIsUsedAsEver) {
  write(0, 4096, 1);
  EXPECT_TRUE(file->fsync(cursor));
  expect_read(0, 4096, 1);
  EXPECT_EQ(said_, 0);
}

TEST_F(RequirePowerTest, IoOnMemoryThatDoesNotSurviveIsAnErrorAndDoesNotGoThroughTheMds) {
  for (const Durability weak : {Durability::kVolatile, Durability::kProcess}) {
    channel.durability = weak;
    build(options_now, 4 << 20);
    said_ = 0;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(error_of_write(0), EIO);
      EXPECT_EQ(error_of_read(8192), EIO);
    }
    EXPECT_EQ(brick.connections, 0);
    EXPECT_EQ(channel.writes + channel.reads, 0);
    EXPECT_EQ(said_, 1) << "once per device";
  }
}

TEST_F(RequirePowerTest, ADeviceThatHasGotMemoryThatSurvivesIsUsed) {
  channel.durability = Durability::kVolatile;
  EXPECT_EQ(error_of_write(0), EIO);
  channel.durability = Durability::kPower;
  std::this_thread::sleep_for(Milliseconds(50));  // it rests
  write(0, 4096, 1);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(RequirePowerTest, AFlushDoesNotWaitForADeviceThatHasLostItsMemoryThatSurvives) {
  write(0, 4096, 1);
  channel.durability = Durability::kVolatile;
  brick.ticket = channel.ticket = 2;  // another process, with other memory
  brick.cut_connection();
  path->layouts_lost();
  EXPECT_EQ(error_of_fsync(), EIO);
}

TEST_F(RequirePowerTest, WithoutTheOptionAnyMemoryWillDo) {
  channel.durability = channel.server_durability = Durability::kVolatile;
  options_now.require_power = false;
  build(options_now, 4 << 20);
  write(0, 4096, 1);
  EXPECT_TRUE(file->fsync(cursor));
}

TEST_F(RequirePowerTest, WhatWentThroughAnMdsThatHasWeakerMemoryIsNotSynced) {
  channel.refuse_layoutgets({nfs4::Status::kLayoutUnavailable});
  write(0, 4096, 1);
  EXPECT_EQ(channel.writes, 1);
  channel.server_durability = Durability::kProcess;
  EXPECT_EQ(error_of_fsync(), EIO);
  EXPECT_EQ(error_of_fsync(), EIO);
  EXPECT_EQ(said_, 1);
  channel.server_durability = Durability::kPower;
  EXPECT_EQ(error_of_fsync(), 0);
  const int calls = channel.calls;
  EXPECT_EQ(error_of_fsync(), 0);
  EXPECT_EQ(channel.calls, calls) << "nothing new went through the MDS";
}

}  // namespace
}  // namespace pnfsrdma::initiator

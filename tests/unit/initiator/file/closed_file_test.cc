// SPDX-License-Identifier: Apache-2.0
#include <future>
#include <thread>

#include "shared/initiator/brick/device_table.h"
#include "shared/initiator/file/background.h"
#include "tests/unit/initiator/file/data_path_fixture.h"

// What was written before a close is flushed by the fsync of whoever opens the file next (sync FILE, say).
namespace pnfsrdma::initiator {
namespace {

class ClosedFileTest : public DataPathTest {
 protected:
  void SetUp() override { make_file(1 << 20); }

  void close_last() {
    ASSERT_TRUE(file->close(cursor));
    file->release();
    file.reset();
  }
  void reopen() {
    file = path->open(handle, opens, channel.size);
    cursor = file->error_cursor();
    events.take();
  }
};

TEST_F(ClosedFileTest, WritesThroughTheMdsAreCommittedByTheNextOpensFsync) {
  options_now.threshold_write_size = 2 << 20;
  make_file(1 << 20);
  write(4096, 4096, 1);  // the first one is durable at once
  write(0, 4096, 1);
  close_last();
  reopen();
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(channel.commits, 1);
}

TEST_F(ClosedFileTest, WritesUnderALostLayoutAreFlushedByTheNextOpensFsync) {
  write(0, 4096, 1);
  path->layout_stateid_gone(channel.stateid());
  close_last();
  reopen();
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_EQ(events.take(), (std::vector<std::string>{"commit", "persist"}));
}

// A program that opens, writes and closes again and again: what is asked for behind an append may find it closed.
TEST_F(ClosedFileTest, ALayoutThatIsAskedForTooLateKeepsNobodyFromTheNextOne) {
  options_now.layout_pause = std::chrono::hours(1);
  make_file(1 << 20);
  opens.closed = 1;
  write(0, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 0);
  write(0, 4096, 2);
  EXPECT_EQ(channel.layoutgets, 1);
}

TEST_F(ClosedFileTest, AnUnmountFlushesWhatNobodyHasFlushed) {
  options_now.threshold_write_size = 2 << 20;
  make_file(1 << 20);
  write(4096, 4096, 1);  // the first one is durable at once
  write(0, 4096, 1);
  close_last();
  path->shut_down(clock.now() + std::chrono::seconds(5));
  EXPECT_EQ(channel.commits, 1);
}

TEST_F(ClosedFileTest, WhatNobodyFlushesIsFlushedAfterAWhile) {
  options_now.flush_after = Milliseconds(20);
  make_file(1 << 20);
  write(1 << 20, 4096, 1);
  for (int i = 0; i < 1000 && channel.size == 1 << 20; ++i) std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_EQ(channel.size, (1u << 20) + 4096);
  EXPECT_FALSE(file->inside().dirty.anything_unflushed());
}

TEST_F(ClosedFileTest, FlushedFilesAreForgottenWhenTheyAreMany) {
  options_now.threshold_write_size = 2 << 20;
  options_now.closed_files_kept = 1;
  make_file(1 << 20);
  for (uint8_t i = 0; i < 4; ++i) {
    const nfs4::FileHandle one{Bytes(16, std::byte{i})};
    file = path->open(one, opens, 1 << 20);
    cursor = file->error_cursor();
    write(4096, 4096, 1);  // the first one is durable at once
    write(0, 4096, 1);
    close_last();
  }
  path->shut_down(clock.now() + std::chrono::seconds(5));
  EXPECT_EQ(channel.commits, 4);
}

TEST_F(ClosedFileTest, ALossThatNobodyHasHeardOfIsHeardByTheNextOpen) {
  write(0, 4096, 1);
  FileInside& inside = file->inside();
  const auto alive = inside.shared_from_this();
  close_last();
  brick.set_verifier(77);
  ASSERT_TRUE(inside.flusher.flush(true));  // of a recall
  reopen();
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
  EXPECT_TRUE(file->fsync(cursor));
  reopen();
  EXPECT_TRUE(file->fsync(cursor));
}

// Whoever opens it next hears what that flush finds.
TEST_F(ClosedFileTest, AFileWhoseFlushIsUnderWayIsNotForgotten) {
  write(0, 4096, 1);
  path->layout_stateid_gone(channel.stateid());
  brick.set_verifier(77);
  channel.during_commit = [this] {
    channel.during_commit = nullptr;
    close_last();
  };
  FileInside& inside = file->inside();
  const auto alive = inside.shared_from_this();
  ASSERT_TRUE(inside.flusher.flush(true));
  ASSERT_EQ(file, nullptr);
  reopen();
  EXPECT_EQ(file->fsync(cursor).error().number(), EIO);
}

TEST_F(ClosedFileTest, ARemovedFileIsForgotten) {
  options_now.threshold_write_size = 2 << 20;
  options_now.closed_files_kept = 0;
  make_file(1 << 20);
  const std::weak_ptr<FileState> state = file->inside().weak_from_this();
  write(0, 4096, 1);
  channel.refuse_commits = nfs4::Status::kStale;
  close_last();
  for (int i = 0; i < 500 && !state.expired(); ++i) std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_TRUE(state.expired());
}

TEST_F(ClosedFileTest, WhatHasToBeDoneForOthersDoesNotWaitForItsSilentBrick) {
  options_now.closed_files_kept = 0;
  options_now.io_timeout = std::chrono::hours(1);
  make_file(1 << 20);
  write(0, 4096, 1);
  Background& background = file->inside().mount.background;
  path->layout_stateid_gone(channel.stateid());
  brick.ticket = 9;
  brick.cut_connection();
  close_last();
  std::promise<void> done;
  background.post([&] { done.set_value(); });
  const auto state = done.get_future().wait_for(std::chrono::minutes(1));
  path->abort();
  path.reset();
  EXPECT_EQ(state, std::future_status::ready);
}

TEST_F(ClosedFileTest, WhoseBrickHasJustNotAnsweredIsLeftForTheNextTime) {
  options_now.closed_files_kept = 0;
  options_now.io_timeout = options_now.connect_timeout = std::chrono::minutes(1);
  options_now.connect_pause_first = options_now.connect_pause_max = std::chrono::hours(1);
  make_file(1 << 20);
  FakeBrick other(*brick_transport, "other:0", events);
  Background& closing = file->inside().mount.closing;
  write(0, 4096, 1);
  path->layout_stateid_gone(channel.stateid());
  channel.move_to(other);
  Device& device = *file->inside().mount.devices.all().front();
  device.lost(*device.connect());
  brick.ticket = 9;
  ASSERT_FALSE(device.connect());
  const int commits = channel.commits;
  const std::weak_ptr<FileState> silent = file->inside().weak_from_this();
  close_last();
  ASSERT_TRUE(closing.run_all(clock.now() + std::chrono::minutes(1)));
  file = path->open(nfs4::FileHandle{Bytes(16, std::byte{6})}, opens, 1 << 20);
  cursor = file->error_cursor();
  write(0, 4096, 1);
  const std::weak_ptr<FileState> healthy = file->inside().weak_from_this();
  close_last();
  ASSERT_TRUE(closing.run_all(clock.now() + std::chrono::minutes(1)));
  EXPECT_TRUE(healthy.expired());
  EXPECT_FALSE(silent.expired());
  EXPECT_EQ(channel.commits, commits);
  path->abort();
  path.reset();
}

}  // namespace
}  // namespace pnfsrdma::initiator

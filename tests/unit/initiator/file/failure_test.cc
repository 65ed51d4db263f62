// SPDX-License-Identifier: Apache-2.0
#include <future>
#include <thread>

#include "shared/initiator/cancellation.h"
#include "shared/nfs4/operation_table.h"
#include "tests/unit/initiator/file/data_path_fixture.h"
#include "tests/unit/rdma/held_queue_pair.h"

namespace pnfsrdma::initiator {
namespace {

class FailureTest : public DataPathTest {
 protected:
  void SetUp() override { make_file(4 << 20); }
};

TEST_F(FailureTest, ADeadConnectionCostsAReconnectAndNoMdsCall) {
  write(0, 4096, 1);
  const int before = channel.calls;
  brick.cut_connection();
  write(4096, 4096, 1);
  expect_read(0, 8192, 1);
  EXPECT_EQ(channel.calls, before);
  EXPECT_EQ(brick.connections, 2);
  EXPECT_EQ(path->statistics().reconnects.value(), 1u);
}

TEST_F(FailureTest, ADeviceThatIsNotReachedIsReportedOnceAnOutage) {
  write(0, 4096, 1);
  brick.cut_connection();
  brick.connections_max = 1;
  for (int i = 0; i < 3; ++i) expect_read(0, 4096, 1);
  EXPECT_GE(channel.reads, 1);
  ASSERT_EQ(channel.layout_errors.size(), 1u);
  const nfs4::LayoutErrorArguments& report = channel.layout_errors.front();
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_EQ(report.errors[0].device, channel.device_of(brick));
  EXPECT_EQ(report.errors[0].status, nfs4::Status::kNxIo);
  EXPECT_EQ(report.errors[0].operation, static_cast<uint32_t>(nfs4::Operation::kRead));
  EXPECT_EQ(report.offset, 0u);
  EXPECT_EQ(report.length, 4096u);
}

TEST_F(FailureTest, ADeviceThatStaysUnreachedIsReportedAgain) {
  options_now.report_distance = Milliseconds(1);
  build(options_now, 4 << 20);
  brick.connections_max = 0;
  for (int i = 0; i < 3; ++i) {
    expect_read(0, 4096, 0);
    std::this_thread::sleep_for(Milliseconds(30));  // behind the pause between tries
  }
  EXPECT_GE(channel.layout_errors.size(), 2u);
}

TEST_F(FailureTest, ADeviceThatIsReachedIsNotReported) {
  write(0, 4096, 1);
  brick.cut_connection();
  expect_read(0, 4096, 1);
  EXPECT_EQ(brick.connections, 2);
  EXPECT_TRUE(channel.layout_errors.empty());
}

TEST_F(FailureTest, AQueuePairTheDeviceKeepsHoldsUpNoWorker) {
  const auto hold = std::make_shared<rdma::testing::Hold>();
  client_transport = std::make_shared<rdma::testing::WrappedTransport>(
      make_transport(), rdma::testing::Wrapping(), rdma::testing::held_by(hold));
  build(options_now, 4 << 20);
  write(0, 4096, 1);
  brick.cut_connection();
  auto next = std::async(std::launch::async, [this] { write(4096, 4096, 1); });
  EXPECT_EQ(next.wait_for(std::chrono::seconds(8)), std::future_status::ready);
  hold->wait_until_asked();
  EXPECT_EQ(brick.connections, 2);
  hold->release();
}

TEST_F(FailureTest, AQueuePairWhoseHelloFailedAndTheDeviceKeepsHoldsUpNoWorker) {
  const auto hold = std::make_shared<rdma::testing::Hold>();
  client_transport = std::make_shared<rdma::testing::WrappedTransport>(
      make_transport(), rdma::testing::Wrapping(), rdma::testing::held_by(hold));
  build(options_now, 4 << 20);
  network->set_faults({.drop_after_operations = 1});  // the hello has no answer
  auto through_the_mds = std::async(std::launch::async, [this] { write(0, 4096, 1); });
  EXPECT_EQ(through_the_mds.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  hold->wait_until_asked();
  EXPECT_EQ(channel.writes, 1);
  hold->release();
}

TEST_F(FailureTest, ExactlyTheUnacknowledgedIsPostedAgain) {
  // Sixteen pieces; the connection dies under the tenth.
  channel.segment_bytes = 64 << 10;
  write(0, 1 << 20, 1);
  brick.cut_connection();
  network->set_faults({.drop_after_operations = 2 + 9});  // hello call and reply first
  const uint64_t before = path->statistics().rdma_writes.value();
  write(0, 1 << 20, 2);
  network->set_faults({});
  expect_read(0, 1 << 20, 2);
  EXPECT_TRUE(holds(brick.memory(), 0, 1 << 20, 2));
  EXPECT_EQ(path->statistics().rdma_writes.value() - before, 16u);
  EXPECT_GE(path->statistics().replays.value(), 7u);
  EXPECT_EQ(channel.writes, 0);
}

// A WRITE was posted and has no answer, and then the brick cannot be reached any more.
class UnknownOutcomeTest : public FailureTest {
 protected:
  void SetUp() override {
    options_now.io_timeout = Milliseconds(200);
    make_file(4 << 20);
    write(0, 4096, 1);
    brick.cut_connection();
    brick.connections_max = 2;
    network->set_faults({.drop_after_operations = 2});  // hello call and reply
  }
};

TEST_F(UnknownOutcomeTest, GoesThroughTheMdsWhenItsHandleIsDead) {
  write(0, 4096, 2);
  EXPECT_EQ(channel.layoutreturns, 1);
  EXPECT_EQ(channel.writes, 1);
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 2));
  // Nothing else is unknown.
  write(8192, 4096, 2);
  EXPECT_EQ(channel.layoutreturns, 1);
}

// Nobody says that its handle is dead.
class UndeadHandleTest : public UnknownOutcomeTest {
 protected:
  explicit UndeadHandleTest(Persistence persistence = Persistence::kHard) {
    options_now.persistence = persistence;
  }
  void SetUp() override {
    UnknownOutcomeTest::SetUp();
    channel.refuse_returns = nfs4::Status::kIo;
    filled(0, 4096, 2);
  }
  // What the buffer holds.
  std::future<Result<size_t>> write_elsewhere(Cancellation* cancellation = nullptr) {
    return std::async(std::launch::async, [this, cancellation] {
      std::optional<CancellationScope> scope;
      if (cancellation != nullptr) scope.emplace(*cancellation);
      return file->write(0, buffer->slice(0, 4096));
    });
  }
  // Where one does not, the test has failed, and the others must not hang with it.
  template <typename T>
  bool waits(std::future<T>& future) {
    const bool still = future.wait_for(Milliseconds(1500)) == std::future_status::timeout;
    if (!still) heal();
    return still;
  }
  void heal() {
    network->set_faults({});
    brick.connections_max = INT_MAX;
  }
};

TEST_F(UndeadHandleTest, AHardMountWaits) {
  auto one = write_elsewhere();
  ASSERT_TRUE(waits(one));
  // Not beside the first before that has its outcome: between two at the same time there is no order.
  auto other = write_elsewhere();
  ASSERT_TRUE(waits(other));
  EXPECT_EQ(channel.writes, 0);
  heal();
  EXPECT_TRUE(one.get());
  EXPECT_TRUE(other.get());
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 2));
}

TEST_F(UndeadHandleTest, AReturnThatIsAnsweredLaterEndsTheWait) {
  auto written = write_elsewhere();
  ASSERT_TRUE(waits(written));
  channel.refuse_returns = nfs4::Status::kOk;
  EXPECT_TRUE(written.get());
  EXPECT_EQ(channel.writes, 1);
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 2));
}

// A new session of the same client: it has forgotten its layouts, the server has not.
TEST_F(UndeadHandleTest, ALayoutThatWasForgottenWithItsSessionIsNotReturned) {
  auto written = write_elsewhere();
  ASSERT_TRUE(waits(written));
  path->layouts_lost();
  ASSERT_TRUE(waits(written));
  EXPECT_EQ(channel.writes, 0);
  channel.refuse_returns = nfs4::Status::kOk;
  EXPECT_TRUE(written.get());
  EXPECT_EQ(channel.writes, 1);
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 2));
}

TEST_F(UndeadHandleTest, OneThatTheServerDoesNotKnowAnyMoreIs) {
  auto written = write_elsewhere();
  ASSERT_TRUE(waits(written));
  channel.refuse_returns = nfs4::Status::kBadStateid;
  path->layouts_lost();
  EXPECT_TRUE(written.get());
  EXPECT_EQ(channel.writes, 1);
}

// Somebody has removed it, and the server has expelled this client, whose open would have kept it.
class GoneFileTest : public UndeadHandleTest {
 protected:
  void expect_end_of_wait(std::future<Result<size_t>>& written) {
    channel.refuse_writes = nfs4::Status::kStale;
    channel.refuse_returns = nfs4::Status::kStale;
    const bool ended = written.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    EXPECT_TRUE(ended);
    if (!ended) path->abort();
    const auto outcome = written.get();
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().number(), ESTALE);
  }
};

TEST_F(GoneFileTest, IsWaitedForNoLonger) {
  auto written = write_elsewhere();
  ASSERT_TRUE(waits(written));
  expect_end_of_wait(written);
}

TEST_F(GoneFileTest, NorIsOneWhoseLayoutIsForgotten) {
  auto written = write_elsewhere();
  ASSERT_TRUE(waits(written));
  path->layouts_lost();
  expect_end_of_wait(written);
}

// Its export is gone, and the server has not revoked the layout yet.
TEST_F(GoneFileTest, AsLongAsItsLayoutIsInForceItIs) {
  auto written = write_elsewhere();
  ASSERT_TRUE(waits(written));
  channel.stateid_status = nfs4::Status::kOk;
  channel.refuse_returns = nfs4::Status::kStale;
  ASSERT_TRUE(waits(written));
  path->layouts_lost();
  ASSERT_TRUE(waits(written));
  EXPECT_EQ(channel.writes, 0);
  channel.stateid_status = nfs4::Status::kAdminRevoked;
  expect_end_of_wait(written);
}

TEST_F(UndeadHandleTest, AKilledProcessWaitsNoLonger) {
  struct Killed final : Cancellation {
    std::atomic<bool> killed = false;
    bool requested() override { return killed; }
  } cancellation;
  auto written = write_elsewhere(&cancellation);
  ASSERT_TRUE(waits(written));
  cancellation.killed = true;
  EXPECT_EQ(written.get().error().number(), EINTR);
  EXPECT_EQ(channel.writes, 0);
}

TEST_F(UndeadHandleTest, TheEndOfTheMountEndsTheWait) {
  auto written = write_elsewhere();
  ASSERT_TRUE(waits(written));
  path->abort();
  EXPECT_EQ(written.get().error().number(), ESHUTDOWN);
}

// What was grown and is void has to be written again there.
TEST_F(UndeadHandleTest, GrowthThatIsToBeWrittenThereAgainIsNotLost) {
  heal();
  write(4 << 20, 4096, 2);
  brick.cut_connection();
  brick.connections_max = brick.connections + 1;
  network->set_faults({.drop_after_operations = 2});
  filled(4 << 20, 4096, 3);
  auto written =
      std::async(std::launch::async, [this] { return file->write(4 << 20, buffer->slice(0, 4096)); });
  ASSERT_TRUE(waits(written));
  file->inside().dirty.void_growth();
  auto synced = std::async(std::launch::async, [this] { return file->fsync(cursor); });
  ASSERT_TRUE(waits(synced));
  heal();
  EXPECT_TRUE(written.get());
  EXPECT_TRUE(synced.get());
  EXPECT_EQ(path->statistics().lost_writes.value(), 0u);
  EXPECT_EQ(channel.size, (4u << 20) + 4096);
}

class SoftUndeadHandleTest : public UndeadHandleTest {
 protected:
  SoftUndeadHandleTest() : UndeadHandleTest(Persistence::kSoft) {}
};

TEST_F(SoftUndeadHandleTest, ASoftMountSaysEio) {
  EXPECT_EQ(file->write(0, filled(0, 4096, 2)).error().number(), EIO);
  // Nor may another one go there.
  EXPECT_EQ(file->write(0, filled(0, 4096, 3)).error().number(), EIO);
  EXPECT_EQ(channel.writes, 0);
  heal();
  write(0, 4096, 4);
  EXPECT_TRUE(holds(brick.memory(), 0, 4096, 4));
}

class SoftErrorUndeadHandleTest : public UndeadHandleTest {
 protected:
  SoftErrorUndeadHandleTest() : UndeadHandleTest(Persistence::kSoftError) {}
};

TEST_F(SoftErrorUndeadHandleTest, SaysEtimedout) {
  EXPECT_EQ(file->write(0, filled(0, 4096, 2)).error().number(), ETIMEDOUT);
}

TEST_F(FailureTest, AGrantThatIsDeadOnTheNewConnectionIsAskedForAnew) {
  write(0, 4096, 1);
  // Revoked: the handle is dead, nobody told us.
  brick.withdraw(0, 1 << 20);
  write(4096, 4096, 1);
  EXPECT_EQ(channel.layoutgets, 2);
  EXPECT_EQ(channel.writes, 0);
  expect_read(0, 8192, 1);
}

TEST_F(FailureTest, AGrantThatStaysDeadMeansTheMds) {
  write(0, 4096, 1);
  brick.withdraw(0, 1 << 20);
  channel.refuse_layoutgets({nfs4::Status::kLayoutUnavailable});
  write(4096, 4096, 1);
  EXPECT_EQ(channel.writes, 1);
  expect_read(0, 8192, 1);
}

TEST_F(FailureTest, AGrowthWhoseGrantWasRevokedIsNeverCommittedUnderANewOne) {
  write(4 << 20, 4096, 1);
  brick.withdraw(4 << 20, 1 << 20);
  std::memset(brick.memory() + (4 << 20), 0, 1 << 20);
  // Under a fresh layout; but the server has zeroed what lay beyond its end of file.
  write((4 << 20) + 4096, 4096, 1);
  EXPECT_TRUE(file->fsync(cursor));
  EXPECT_TRUE(holds(brick.memory() + (4 << 20), 4 << 20, 8192, 1));
  EXPECT_EQ(channel.size, (4u << 20) + 8192);
  EXPECT_EQ(file->size(), (4u << 20) + 8192);
}

TEST_F(FailureTest, OtherFilesAreNotHurtByADeadGrant) {
  write(0, 4096, 1);
  write(2 << 20, 4096, 1);
  brick.withdraw(0, 1 << 20);
  write(4096, 4096, 1);
  const int gets = channel.layoutgets;
  expect_read(2 << 20, 4096, 1);
  EXPECT_EQ(channel.layoutgets, gets);
}

TEST_F(FailureTest, ARefusedTicketIsAskedForAnewAndDropsTheLayouts) {
  write(0, 4096, 1);
  brick.ticket = channel.ticket = 2;
  brick.cut_connection();
  write(4096, 4096, 1);
  EXPECT_EQ(path->statistics().tickets_refused.value(), 1u);
  EXPECT_EQ(channel.device_infos, 2);
  EXPECT_EQ(channel.layoutgets, 2);
  EXPECT_EQ(channel.writes, 0);
}

TEST_F(FailureTest, ATicketThatStaysRefusedMeansTheMds) {
  brick.ticket = 3;
  write(0, 4096, 1);
  expect_read(0, 4096, 1);
  EXPECT_EQ(channel.writes, 1);
  EXPECT_GE(path->statistics().fallbacks.value(), 2u);
  // The device rests and is then tried again.
  channel.ticket = 3;
  std::this_thread::sleep_for(Milliseconds(50));
  write(0, 4096, 2);
  EXPECT_EQ(channel.writes, 1);
}

TEST_F(FailureTest, ConnectionsThatDieAgainAndAgainUnderManyThreadsLoseNothing) {
  std::atomic<bool> stop = false;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto own = path->buffers().take();
      uint8_t seed = 0;
      while (!stop) {
        const uint64_t offset = uint64_t(t) * (1 << 20) + (seed % 8) * 131072;
        const BufferSlice slice = (*own)->slice(0, 131072);
        for (size_t i = 0; i < slice.size(); ++i) slice.data()[i] = pattern(offset + i, seed);
        if (!file->write(offset, slice)) ++failed;
        std::memset(slice.data(), 0, slice.size());
        if (!file->read(offset, slice) || !holds(slice.data(), offset, slice.size(), seed)) ++failed;
        ++seed;
      }
    });
  }
  for (int i = 0; i < 25; ++i) {
    std::this_thread::sleep_for(Milliseconds(6));
    brick.cut_connection();
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  ASSERT_TRUE(file->fsync(cursor));
  EXPECT_GE(brick.connections, 3);
}

TEST_F(FailureTest, AnAbortedMountEndsAtOnce) {
  write(0, 4096, 1);
  path->abort();
  EXPECT_EQ(file->write(0, buffer->slice(0, 10)).error().number(), ESHUTDOWN);
}

}  // namespace
}  // namespace pnfsrdma::initiator

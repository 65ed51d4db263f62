// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "shared/base/sync.h"
#include "shared/initiator/session/session.h"
#include "tests/unit/initiator/session/scripted_mds.h"

// When the lease ends, as far as the session can say.
namespace pnfsrdma::initiator {
namespace {

using namespace std::chrono_literals;

class LeaseTest : public testing::Test {
 protected:
  LeaseTest() {
    SessionOptions options{.host = "127.0.0.1", .port = mds_.port, .owner = "laptop"};
    options.slept = [this] { return slept_.load(); };
    session_ = *Session::start(options, nullptr, nullptr);
  }
  bool call(const CallOptions& options = {}) {
    return session_->call({nfs4::PutRootFileHandleArguments{}, nfs4::RemoveArguments{"x"}}, {}, options)
        .has_value();
  }

  ScriptedMds mds_;
  std::atomic<std::chrono::nanoseconds> slept_{7s};
  std::unique_ptr<Session> session_;
};

TEST_F(LeaseTest, EndsALeaseAfterTheNewestAnsweredCallWasSent) {
  const SteadyTime before = steady_now();
  ASSERT_TRUE(call());
  EXPECT_GE(session_->lease_end(), before + session_->lease());
  EXPECT_LE(session_->lease_end(), steady_now() + session_->lease());
  const SteadyTime told = session_->lease_end();
  {
    const std::lock_guard lock(mds_.mutex);
    mds_.faults = {ScriptedMds::Fault::kSilence};
  }
  EXPECT_FALSE(call({.deadline = steady_now() + 100ms}));
  EXPECT_EQ(session_->lease_end(), told);
}

TEST_F(LeaseTest, RunsOnWhileTheHostIsSuspended) {
  ASSERT_TRUE(call());
  EXPECT_GT(session_->lease_end(), steady_now());
  slept_ = slept_.load() + session_->lease();
  EXPECT_LE(session_->lease_end(), steady_now());
  ASSERT_TRUE(call());
  EXPECT_GT(session_->lease_end(), steady_now());
  EXPECT_LE(session_->lease_end(), steady_now() + session_->lease());
}

TEST(SleptSoFarTest, IsATimeThatDoesNotRunWhileTheHostIsAwake) {
  const auto before = slept_so_far();
  EXPECT_GE(before, 0ns);
  sleep_for(50ms);
  EXPECT_LT(slept_so_far() - before, 40ms);
}

}  // namespace
}  // namespace pnfsrdma::initiator

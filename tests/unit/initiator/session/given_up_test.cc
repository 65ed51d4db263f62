// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "shared/initiator/session/session.h"
#include "tests/unit/initiator/session/scripted_mds.h"

// What becomes of a call whose caller does not wait any more, when the connection is lost under it.
namespace pnfsrdma::initiator {
namespace {

using namespace std::chrono_literals;
using Fault = ScriptedMds::Fault;

class GivenUpTest : public testing::Test {
 protected:
  GivenUpTest() {
    session_ = *Session::start({.host = "127.0.0.1", .port = mds_.port, .owner = "laptop"}, nullptr, nullptr);
    const std::lock_guard lock(mds_.mutex);
    mds_.on_operation = [this](const ScriptedMds::Operation& operation) {
      writes_ += std::holds_alternative<nfs4::WriteArguments>(operation);
      removes_ += std::holds_alternative<nfs4::RemoveArguments>(operation);
      return nfs4::status_result(nfs4::operation_of(operation), nfs4::Status::kOk);
    };
  }

  // The server does with it what `fault` says, and the caller goes. Then there is another connection.
  void give_up(nfs4::ArgumentOperation operation, Fault fault) {
    uint32_t connections = 0;
    {
      const std::lock_guard lock(mds_.mutex);
      mds_.faults = {fault};
      connections = mds_.connections;
    }
    EXPECT_FALSE(session_->call({nfs4::PutRootFileHandleArguments{}, std::move(operation)}, {},
                                {.deadline = steady_now() + 300ms}));
    mds_.drop_connections();
    const auto is_back = [&] {
      const std::lock_guard lock(mds_.mutex);
      return mds_.connections > connections;
    };
    for (int i = 0; i < 500 && !is_back(); ++i) std::this_thread::sleep_for(10ms);
    // On the slot of what was given up, too.
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(session_->call({nfs4::PutRootFileHandleArguments{}}, {}, {.deadline = steady_now() + 10s}));
    EXPECT_EQ(session_->statistics().new_sessions, 0u);
  }

  static nfs4::WriteArguments write() {
    nfs4::WriteArguments arguments;
    arguments.data = Bytes(4, std::byte{'x'});
    return arguments;
  }

  ScriptedMds mds_;
  std::atomic<int> writes_ = 0, removes_ = 0;
  std::unique_ptr<Session> session_;
};

// It could be done behind a write of the same bytes that was acknowledged since.
TEST_F(GivenUpTest, AWriteThatHasNotArrivedIsNotDone) {
  give_up(write(), Fault::kSilence);
  EXPECT_EQ(writes_, 0);
}

TEST_F(GivenUpTest, AWriteThatWasDoneIsDoneOnce) {
  give_up(write(), Fault::kMute);
  EXPECT_EQ(writes_, 1);
}

TEST_F(GivenUpTest, WhatChangesNoDataIsDone) {
  give_up(nfs4::RemoveArguments{"x"}, Fault::kSilence);
  EXPECT_EQ(removes_, 1);
}

}  // namespace
}  // namespace pnfsrdma::initiator

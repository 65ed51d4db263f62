// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/session_mds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/initiator/session/scripted_mds.h"

namespace pnfsrdma::initiator {
namespace {

using namespace std::chrono_literals;

// LAYOUTSTATS, alone and in front of LAYOUTRETURN.
class LayoutStatisticsTest : public testing::Test {
 protected:
  void SetUp() override {
    server.on_operation = [this](const ScriptedMds::Operation& operation) { return answer(operation); };
    SessionOptions options;
    options.host = "127.0.0.1";
    options.port = server.port;
    options.owner = "test";
    auto started = Session::start(options, nullptr, nullptr);
    ASSERT_TRUE(started) << started.error().to_string();
    session = *std::move(started);
    mds.emplace(*session);
  }

  ScriptedMds::Answer answer(const ScriptedMds::Operation& operation) {
    if (const auto* told = std::get_if<nfs4::LayoutStatisticsArguments>(&operation)) {
      ++asked;
      const nfs4::Status status = refusals.empty() ? nfs4::Status::kOk : refusals.front();
      if (!refusals.empty()) refusals.pop_front();
      if (status == nfs4::Status::kOk) bytes.push_back(told->write.bytes);
      return nfs4::status_result(nfs4::Operation::kLayoutStatistics, status);
    }
    if (std::holds_alternative<nfs4::LayoutReturnArguments>(operation)) {
      ++returned;
      return nfs4::LayoutReturnResponse(nfs4::LayoutReturnResult{});
    }
    return nfs4::status_result(nfs4::operation_of(operation), nfs4::Status::kOk);
  }

  static LayoutReport report(uint64_t bytes, uint32_t user = 0) {
    LayoutReport report;
    report.file.handle = nfs4::FileHandle{Bytes(16, std::byte{5})};
    report.file.credential.user = user;
    report.activity.write = {.count = 1, .bytes = bytes};
    report.activity.update.layout_type = nfs4::kLayoutTypePmem;
    return report;
  }
  void give_back() {
    const LayoutReport told = report(4096);
    nfs4::LayoutReturnArguments arguments;
    arguments.layout_type = nfs4::kLayoutTypePmem;
    arguments.what =
        nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFile>({.length = nfs4::kLengthToEnd});
    EXPECT_TRUE(mds->layout_return(told.file, arguments, &told.activity));
  }
  void tell(std::vector<LayoutReport> reports) {
    mds->start_layout_statistics(std::move(reports));
    while (!settled()) std::this_thread::sleep_for(1ms);
  }
  // What a completion posts is posted before the post counts as complete.
  bool settled() { return session->drain_posts(steady_now() + 5s); }

  // The server's, under its mutex; read when nothing is under way.
  std::deque<nfs4::Status> refusals;
  int asked = 0, returned = 0;
  std::vector<uint64_t> bytes;
  ScriptedMds server;
  std::unique_ptr<Session> session;
  std::optional<SessionMds> mds;
};

TEST_F(LayoutStatisticsTest, GoesWithTheReturn) {
  give_back();
  EXPECT_THAT(bytes, testing::ElementsAre(4096));
  EXPECT_EQ(returned, 1);
}

TEST_F(LayoutStatisticsTest, WhatIsRefusedKeepsNoLayout) {
  refusals = {nfs4::Status::kBadStateid};
  give_back();
  EXPECT_EQ(returned, 1);
  give_back();
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(returned, 2);
}

TEST_F(LayoutStatisticsTest, AServerWithoutItIsNotAskedAgain) {
  refusals = {nfs4::Status::kNotSupp};
  give_back();
  give_back();
  tell({report(1)});
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(returned, 2);
}

TEST_F(LayoutStatisticsTest, SeveralGoInOneCompound) {
  const uint64_t before = session->statistics().compounds;
  std::vector<LayoutReport> reports;
  for (uint64_t i = 0; i < 16; ++i) reports.push_back(report(i));
  tell(std::move(reports));
  EXPECT_EQ(bytes.size(), 16u);
  EXPECT_LE(session->statistics().compounds - before, 16u / ((session->operations_max() - 1) / 2) + 1);
}

TEST_F(LayoutStatisticsTest, WhatComesBehindARefusedOneIsToldAllTheSame) {
  refusals = {nfs4::Status::kOk, nfs4::Status::kBadStateid, nfs4::Status::kOk};
  tell({report(1), report(2), report(3), report(4)});
  EXPECT_THAT(bytes, testing::ElementsAre(1, 3, 4));
}

TEST_F(LayoutStatisticsTest, EachUserSpeaksForHimself) {
  const uint64_t before = session->statistics().compounds;
  tell({report(1, 1000), report(2, 1001)});
  EXPECT_THAT(bytes, testing::UnorderedElementsAre(1, 2));
  EXPECT_EQ(session->statistics().compounds - before, 2u);
}

}  // namespace
}  // namespace pnfsrdma::initiator

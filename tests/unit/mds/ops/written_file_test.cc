// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/layout_operations_case.h"

namespace pnfsrdma::mds::testing {
namespace {

using nfs4::IoMode;
using nfs4::Status;

// What reads without an open, or uses a layout, conflicts with a write delegation.
class WrittenFile : public DelegatedFile {
 protected:
  std::optional<nfs4::Stateid> write_delegation() {
    const auto opened =
        holder.open(holder.open_arguments("f", kShareBoth | nfs4::kShareAccessWantWriteDelegation));
    EXPECT_TRUE(opened.ok());
    opened_by_holder = opened.result.stateid;
    const auto* given = opened.result.delegation.get_if<nfs4::DelegationType::kWrite>();
    return given == nullptr ? std::nullopt : std::optional(given->stateid);
  }
  void expect_recall(const nfs4::ArgumentOperation& act) {
    close();
    const auto held = write_delegation();
    ASSERT_TRUE(held);
    EXPECT_EQ(holder.status({nfs4::PutFileHandleArguments{file.handle}, act}), Status::kOk);
    EXPECT_EQ(holder.recalls.size(), 0u) << "his own";
    const auto reply = server.begin({client.next_sequence(), nfs4::PutFileHandleArguments{file.handle}, act});
    for (int turn = 0; turn < 20; ++turn) host.turn();
    EXPECT_EQ(*reply, nullptr);
    ASSERT_EQ(holder.recalls.size(), 1u);
    EXPECT_EQ(
        holder.status({nfs4::PutFileHandleArguments{file.handle}, nfs4::DelegationReturnArguments{*held}}),
        Status::kOk);
    for (int turn = 0; turn < 20; ++turn) host.turn();
    ASSERT_NE(*reply, nullptr);
    EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**reply)->status, Status::kOk);
  }
};

TEST_F(WrittenFile, AReadWithoutAnOpenRecallsIt) {
  expect_recall(nfs4::ReadArguments{.stateid = {}, .offset = 0, .count = 10});
}

TEST_F(WrittenFile, SoDoesAReadWithoutHoles) {
  expect_recall(nfs4::ReadPlusArguments{.stateid = {}, .offset = 0, .count = 10});
}

TEST_F(WrittenFile, SoDoesTheSearchForHoles) {
  expect_recall(nfs4::SeekArguments{.stateid = {}, .offset = 0, .what = nfs4::ContentType::kHole});
}

TEST_F(WrittenFile, ALayoutToReadByOutlivesItsOpenAndKeepsOthersFromOne) {
  const auto read = layout(IoMode::kRead);
  close();
  EXPECT_FALSE(write_delegation());
  EXPECT_EQ(give_back(giving_back(read)).status, Status::kOk);
  for (int turn = 0; turn < 20; ++turn) host.turn();
  EXPECT_TRUE(write_delegation());
}

TEST_F(WrittenFile, ALayoutToWriteByIsHadWithItAndCommitted) {
  close();
  const auto held = write_delegation();
  ASSERT_TRUE(held);
  nfs4::CloseArguments arguments;
  arguments.open_stateid = opened_by_holder;
  ASSERT_EQ(holder.status({nfs4::PutFileHandleArguments{file.handle}, arguments}), Status::kOk);
  const auto first = on<nfs4::LayoutGetResponse>(holder, file.handle, wish(*held));
  ASSERT_EQ(first.status, Status::kOk);
  EXPECT_EQ(on<nfs4::LayoutGetResponse>(holder, file.handle, wish(first.result.stateid)).status, Status::kOk);
  EXPECT_EQ(on<nfs4::LayoutCommitResponse>(holder, file.handle, news(first.result.stateid)).status,
            Status::kOk);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing

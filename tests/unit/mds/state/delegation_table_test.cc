// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/delegation_table.h"

#include <gtest/gtest.h>

#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

class DelegationTableTest : public ::testing::Test {
 protected:
  DelegationState& add(ClientId client, uint64_t inode, DelegationKind kind = DelegationKind::kRead) {
    DelegationState state;
    state.other = make_stateid_other(StateKind::kDelegation, SteadyTime(), random_);
    state.client = client;
    state.inode = inode;
    state.kind = kind;
    return table_.add(std::move(state));
  }

  SeededRandom random_{1};
  DelegationTable table_;
};

TEST_F(DelegationTableTest, FindsByStateidByFileAndByClient) {
  DelegationState& one = add(1, 10);
  DelegationState& other = add(2, 10);
  EXPECT_EQ(table_.find(one.other), &one);
  EXPECT_EQ(table_.of_file(10).size(), 2U);
  EXPECT_EQ(table_.of_client(2), (DelegationTable::Set{&other}));
  EXPECT_EQ(table_.find(10, 1), &one);
  EXPECT_EQ(table_.find(10, 3), nullptr);
  EXPECT_EQ(table_.find(11, 1), nullptr);
}

TEST_F(DelegationTableTest, OnesOwnIsNotHeldByOthers) {
  add(2, 10);
  EXPECT_FALSE(table_.is_held_by_others(10, 2));
  EXPECT_TRUE(table_.is_held_by_others(10, 1));
  add(3, 10);
  EXPECT_TRUE(table_.is_held_by_others(10, 2));
  EXPECT_TRUE(table_.is_held_by_others(10, 3));
}

TEST_F(DelegationTableTest, ToUseAFileConflictsWithAnothersWriteDelegation) {
  add(1, 10);
  EXPECT_EQ(table_.write_delegation(10), nullptr);
  EXPECT_FALSE(table_.conflicts(10, 2, FileAct::kUse));
  EXPECT_TRUE(table_.conflicts(10, 2, FileAct::kChange));
  DelegationState& held = add(1, 11, DelegationKind::kWrite);
  EXPECT_EQ(table_.write_delegation(11), &held);
  EXPECT_TRUE(table_.conflicts(11, 2, FileAct::kUse));
  EXPECT_FALSE(table_.conflicts(11, 1, FileAct::kUse));
  EXPECT_FALSE(table_.conflicts(11, 1, FileAct::kChange));
  table_.revoke(held);
  EXPECT_FALSE(table_.conflicts(11, 2, FileAct::kUse));
}

TEST_F(DelegationTableTest, ARevokedOneIsTheClientsButNotTheFiles) {
  DelegationState& one = add(1, 10);
  table_.revoke(one);
  EXPECT_FALSE(table_.is_delegated(10));
  EXPECT_EQ(table_.revoked_of_client(1), 1U);
  EXPECT_EQ(table_.find(one.other), &one);
  table_.remove(one);
  EXPECT_EQ(table_.revoked_of_client(1), 0U);
  EXPECT_EQ(table_.size(), 0U);
}

}  // namespace
}  // namespace pnfsrdma::mds

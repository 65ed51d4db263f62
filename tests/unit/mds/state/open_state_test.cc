// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/open_state.h"

#include <gtest/gtest.h>

namespace pnfsrdma::mds {
namespace {

class OpenTableTest : public ::testing::Test {
 protected:
  OpenState& add(ClientId client, uint64_t inode, uint32_t access, uint32_t deny) {
    OpenState open;
    open.other = make_stateid_other(StateKind::kOpen, random_);
    open.client = client;
    open.inode = inode;
    open.access = access;
    open.deny = deny;
    return opens_.add(std::move(open));
  }

  SeededRandom random_{1};
  OpenTable opens_;
};

TEST_F(OpenTableTest, FindsByStateidByOwnerAndByFile) {
  OpenState& open = add(1, 10, kShareRead, 0);
  EXPECT_EQ(opens_.find(open.other), &open);
  EXPECT_EQ(opens_.find(1, 10, ByteSpan()), &open);
  EXPECT_EQ(opens_.find(2, 10, ByteSpan()), nullptr);
  EXPECT_EQ(opens_.opens_of_file(10).size(), 1U);
  EXPECT_TRUE(opens_.opens_of_file(11).empty());
}

TEST_F(OpenTableTest, TheClientsOfAFileAreEachToldOnceInOrder) {
  for (const ClientId client : {3, 1, 3, 2, 1, 3}) add(client, 10, kShareRead, 0);
  add(4, 11, kShareRead, 0);
  EXPECT_EQ(opens_.clients_of_file(10), (std::vector<ClientId>{1, 2, 3}));
  EXPECT_TRUE(opens_.clients_of_file(12).empty());
}

TEST_F(OpenTableTest, ShareReservationsConflictBothWays) {
  OpenState& open = add(1, 10, kShareRead, kShareWrite);
  EXPECT_TRUE(opens_.share_allowed(10, kShareRead, 0, nullptr));
  EXPECT_FALSE(opens_.share_allowed(10, kShareWrite, 0, nullptr));
  EXPECT_FALSE(opens_.share_allowed(10, kShareRead, kShareRead, nullptr));
  EXPECT_TRUE(opens_.share_allowed(10, kShareWrite, kShareRead, &open));
}

TEST_F(OpenTableTest, RemovedOpenIsNowhere) {
  OpenState& open = add(1, 10, kShareBoth, 0);
  const StateidOther other = open.other;
  opens_.remove(open);
  EXPECT_EQ(opens_.find(other), nullptr);
  EXPECT_FALSE(opens_.is_open(10));
  EXPECT_TRUE(opens_.opens_of_client(1).empty());
}

TEST(Stateid, SpecialOnesAreTold) {
  EXPECT_EQ(special_stateid(nfs4::Stateid::anonymous()), SpecialStateid::kAnonymous);
  EXPECT_EQ(special_stateid(nfs4::Stateid::read_bypass()), SpecialStateid::kReadBypass);
  EXPECT_EQ(special_stateid(nfs4::Stateid::current()), SpecialStateid::kCurrent);
  EXPECT_EQ(special_stateid(nfs4::Stateid::invalid()), SpecialStateid::kInvalid);
  EXPECT_EQ(special_stateid({7, {}}), SpecialStateid::kInvalid);
}

TEST(Stateid, SeqidZeroMeansTheNewest) {
  EXPECT_EQ(check_seqid(0, 5), nfs4::Status::kOk);
  EXPECT_EQ(check_seqid(5, 5), nfs4::Status::kOk);
  EXPECT_EQ(check_seqid(4, 5), nfs4::Status::kOldStateid);
  EXPECT_EQ(check_seqid(6, 5), nfs4::Status::kBadStateid);
  EXPECT_EQ(check_seqid(0xFFFFFFFF, 1), nfs4::Status::kOldStateid);
  EXPECT_EQ(next_seqid(0xFFFFFFFF), 1U);
}

}  // namespace
}  // namespace pnfsrdma::mds

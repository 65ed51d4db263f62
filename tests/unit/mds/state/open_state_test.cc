// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/open_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::mds {
namespace {

class OpenTableTest : public ::testing::Test {
 protected:
  OpenState& add(ClientId client, uint64_t inode, uint32_t access, uint32_t deny) {
    OpenState open;
    open.other = make_stateid_other(StateKind::kOpen, SteadyTime(), random_);
    open.client = client;
    open.inode = inode;
    open.access = access;
    open.deny = deny;
    return opens_.add(std::move(open));
  }

  SeededRandom random_{1};
  OpenTable opens_;
};

// In the store, which has their records in the order of these bytes.
TEST_F(OpenTableTest, StateidsThatAreYoungTogetherLieTogether) {
  StateidOther last{};
  for (int age = 0; age < 1000; ++age) {
    const auto made = make_stateid_other(StateKind::kOpen, SteadyTime(Milliseconds(age)), random_);
    EXPECT_EQ(kind_of(made), StateKind::kOpen);
    EXPECT_LT(last, made);
    last = made;
  }
}

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

// The table beside a list of what is open, of which everything is counted anew.
class OpenTableModel : public OpenTableTest {
 protected:
  static constexpr uint64_t kFiles = 3;
  static constexpr ClientId kClients = 4;
  uint64_t below(uint64_t end) { return random_.next_u64() % end; }
  bool any(uint64_t inode, const auto& what) const {
    return std::ranges::any_of(open_,
                               [&](const OpenState* open) { return open->inode == inode && what(*open); });
  }
  void change() {
    const uint64_t what = below(10);
    if (open_.empty() || what < 5) {
      open_.push_back(&add(1 + below(kClients), 1 + below(kFiles), 1 + below(3), below(4)));
      return;
    }
    const size_t at = below(open_.size());
    if (what < 7) {
      OpenState changed = *open_[at];
      changed.access = 1 + below(3);
      changed.deny = below(4);
      ++changed.seqid;
      opens_.replace(*open_[at], std::move(changed));
      return;
    }
    opens_.remove(*open_[at]);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(at));
  }
  void compare(uint64_t inode) {
    std::set<ClientId> clients;
    for (ClientId client = 1; client <= kClients; ++client) {
      uint32_t access = 0;
      for (const OpenState* open : open_) {
        if (open->inode == inode && open->client == client) access |= open->access;
      }
      if (access != 0) clients.insert(client);
      ASSERT_EQ(opens_.access_of_client(inode, client), access);
      ASSERT_EQ(opens_.is_open_by_others(inode, client),
                any(inode, [&](const OpenState& open) { return open.client != client; }));
      ASSERT_EQ(opens_.is_written_by_others(inode, client), any(inode, [&](const OpenState& open) {
                  return open.client != client && (open.access & kShareWrite) != 0;
                }));
    }
    ASSERT_EQ(opens_.clients_of_file(inode), std::vector<ClientId>(clients.begin(), clients.end()));
    for (uint32_t access = 1; access <= 3; ++access) {
      for (uint32_t deny = 0; deny <= 3; ++deny) {
        ASSERT_EQ(opens_.share_allowed(inode, access, deny, nullptr), !any(inode, [&](const OpenState& open) {
                    return (open.deny & access) != 0 || (open.access & deny) != 0;
                  }));
      }
    }
  }

  std::vector<OpenState*> open_;
};

TEST_F(OpenTableModel, WhatIsCountedIsWhatIsOpen) {
  for (int step = 0; step < 20'000; ++step) {
    change();
    compare(1 + below(kFiles));
    if (HasFatalFailure()) FAIL() << "step " << step;
  }
  while (!open_.empty()) {
    opens_.remove(*open_.back());
    open_.pop_back();
  }
  for (uint64_t inode = 1; inode <= kFiles; ++inode) compare(inode);
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

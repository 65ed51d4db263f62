// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/delegation_case.h"

// What OPEN understands, and an OPEN that gives a delegation in place of an open (RFC 9754, 3 and 4).
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::DelegationType;

constexpr uint32_t kOnlyOne = nfs4::kShareAccessWantOpenOrDelegation;

class OpenOrDelegation : public DelegationCase {
 protected:
  size_t opens(const TestClient& of) { return server_->opens.opens_of_client(of.id).size(); }
  static bool has_no_open(const nfs4::OpenResult& result) {
    const bool flagged = (result.flags & nfs4::kOpenResultNoOpenStateid) != 0;
    EXPECT_EQ(flagged, result.stateid == nfs4::Stateid{});
    return flagged;
  }
  nfs4::OpenArguments making(TestClient& who, const char* name, uint32_t access) {
    auto arguments = who.open_arguments(name, access);
    arguments.how = creating(create_how(nfs4::CreateMode::kGuarded, mode_attribute(0600)));
    return arguments;
  }
  nfs4::OpenSupport support() {
    const auto wanted = nfs4::Bitmap::of(nfs4::Attribute::kOpenArguments);
    const auto results =
        other_->call({nfs4::PutRootFileHandleArguments{}, nfs4::GetAttributesArguments{wanted}});
    return *response_at<nfs4::GetAttributesResponse>(results, 1).result.attributes.open_arguments;
  }
};

TEST_F(OpenOrDelegation, TheServerSaysWhatItUnderstands) {
  begin();
  const auto all = support();
  EXPECT_EQ(all.share_access, (nfs4::Bitmap{0b1110}));
  EXPECT_EQ(all.share_deny, (nfs4::Bitmap{0b1111}));
  EXPECT_EQ(all.share_access_want, (nfs4::Bitmap{0x300038}));
  EXPECT_EQ(all.open_claim, (nfs4::Bitmap{0b110111}));
  EXPECT_EQ(all.create_mode, (nfs4::Bitmap{0b1111}));
  server_->limits.delegations = false;
  EXPECT_EQ(support().share_access_want, (nfs4::Bitmap{0x30})) << "where none is given";
}

TEST_F(OpenOrDelegation, OnlyTheDelegationIsGiven) {
  begin();
  const auto read = open(*holder_, "f", kWantsRead | kOnlyOne);
  EXPECT_TRUE(read.result.delegation.is<DelegationType::kRead>());
  EXPECT_TRUE(has_no_open(read.result));
  const auto write = open(*holder_, "g", kWantsWrite | kOnlyOne);
  EXPECT_TRUE(write.result.delegation.is<DelegationType::kWrite>());
  EXPECT_TRUE(has_no_open(write.result));
  EXPECT_EQ(opens(*holder_), 0U);
  start();
  EXPECT_EQ(server_->opens.size(), 0U) << "nor is there one on record";
  EXPECT_EQ(server_->delegation_table.size(), 2U);
}

TEST_F(OpenOrDelegation, WhoDoesNotAskGetsBoth) {
  begin();
  const auto opened = open(*holder_, "f", kWantsRead);
  EXPECT_TRUE(opened.result.delegation.is<DelegationType::kRead>());
  EXPECT_FALSE(has_no_open(opened.result));
  EXPECT_EQ(opens(*holder_), 1U);
}

TEST_F(OpenOrDelegation, OnlyTheOpenWhereNoDelegationIsToBeHad) {
  begin();
  open(*other_, "f", kShareWrite);
  const auto opened = open(*holder_, "f", kWantsRead | kOnlyOne);
  EXPECT_EQ(refusal(opened), WhyNoDelegation::kContention);
  EXPECT_FALSE(has_no_open(opened.result));
  EXPECT_EQ(opens(*holder_), 1U);
}

TEST_F(OpenOrDelegation, WhatFollowsInTheCompoundUsesTheDelegation) {
  begin();
  nfs4::ReadArguments read;
  read.stateid = {1, {}};  // the current one
  read.count = 10;
  EXPECT_EQ(holder_->status({nfs4::PutRootFileHandleArguments{},
                             holder_->open_arguments("f", kWantsRead | kOnlyOne), read}),
            Status::kOk);
}

// RFC 9754, 4: else he would not learn that his open has more rights.
TEST_F(OpenOrDelegation, WhoHasTheFileOpenGetsBoth) {
  begin();
  open(*holder_, "f", kShareRead | nfs4::kShareAccessWantNoDelegation);
  const auto again = open(*holder_, "f", kWantsWrite | kOnlyOne);
  EXPECT_TRUE(again.result.delegation.is<DelegationType::kWrite>());
  EXPECT_FALSE(has_no_open(again.result));
  EXPECT_EQ(again.result.stateid.seqid, 2U);
}

TEST_F(OpenOrDelegation, WhatIsDeniedToOthersIsDeniedByAnOpen) {
  begin();
  const auto opened = open(*holder_, "f", kWantsRead | kOnlyOne, kShareWrite);
  EXPECT_TRUE(opened.result.delegation.is<DelegationType::kRead>());
  EXPECT_FALSE(has_no_open(opened.result));
  EXPECT_EQ(opens(*holder_), 1U);
  const InodeId file = server_->names->lookup(kRootInode, "f").value()->id;
  EXPECT_FALSE(server_->opens.share_allowed(file, kShareWrite, 0, nullptr));
}

TEST_F(OpenOrDelegation, OfAFileThatIsNewToo) {
  begin();
  const auto opened = holder_->open(making(*holder_, "new", kWantsWrite | kOnlyOne));
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(opened.result.delegation.is<DelegationType::kWrite>());
  EXPECT_TRUE(opened.result.attributes_set.test(nfs4::Attribute::kMode));
  EXPECT_TRUE(has_no_open(opened.result));
  EXPECT_EQ(opens(*holder_), 0U);
  start();
  EXPECT_EQ(server_->opens.size(), 0U);
  EXPECT_EQ(server_->delegation_table.size(), 1U);
}

TEST_F(OpenOrDelegation, ANewFileHasItsOpenWhereNoDelegationIsToBeHad) {
  begin();
  const auto opened = holder_->open(making(*holder_, "new", kShareWrite | kOnlyOne));
  ASSERT_TRUE(opened.ok());
  EXPECT_FALSE(has_no_open(opened.result));
  EXPECT_EQ(opens(*holder_), 1U);
}

// The daemon died before the answer came: the request is repeated, and meets what it has made.
TEST_F(OpenOrDelegation, OneThatIsRepeatedIsAnsweredWithTheDelegation) {
  begin();
  const Operations sent{holder_->next_sequence(), nfs4::PutRootFileHandleArguments{},
                        making(*holder_, "new", kWantsWrite | kOnlyOne), nfs4::GetFileHandleArguments{}};
  const auto first = server_->call(sent);
  ASSERT_EQ(first.status, Status::kOk);
  const auto made = response_at<nfs4::OpenResponse>(first, 2).result;
  start();
  const auto repeated = server_->call(sent);
  ASSERT_EQ(repeated.status, Status::kOk);
  const auto& answered = response_at<nfs4::OpenResponse>(repeated, 2).result;
  EXPECT_TRUE(has_no_open(answered));
  const auto* given = answered.delegation.get_if<DelegationType::kWrite>();
  ASSERT_NE(given, nullptr);
  EXPECT_EQ(given->stateid, made.delegation.get_if<DelegationType::kWrite>()->stateid);
}

// RFC 8881, 10.2.1: he gives the server his opens, and others theirs.
TEST_F(OpenOrDelegation, ItIsOpenedBeforeItIsReturned) {
  begin();
  const auto opened = open(*holder_, "f", kWantsWrite | kOnlyOne);
  file_ = holder_->last_handle;
  const auto held = opened.result.delegation.get_if<DelegationType::kWrite>()->stateid;
  const auto reply = ask(*other_, write_open());
  ASSERT_EQ(status(reply), std::nullopt);
  ASSERT_EQ(holder_->recalls.size(), 1U);
  auto claim = holder_->open_arguments("", kShareBoth | kOnlyOne);
  claim.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kDelegateCurrentFileHandle>(held);
  const auto results = holder_->call({handle(), claim});
  ASSERT_EQ(results.status, Status::kOk);
  EXPECT_FALSE(has_no_open(response_at<nfs4::OpenResponse>(results, 1).result));
  EXPECT_EQ(give_back(held), Status::kOk);
  turns();
  EXPECT_EQ(status(reply), Status::kOk);
  EXPECT_EQ(opens(*holder_), 1U);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing

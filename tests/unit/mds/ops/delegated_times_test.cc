// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/delegation_case.h"

// Who holds a delegation keeps the file's times (RFC 9754, 5).
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Attribute;
using nfs4::DelegationType;

constexpr uint32_t kWithTimes = nfs4::kShareAccessWantDelegatedTimes;

nfs4::Attributes times(std::optional<WallTime> access, std::optional<WallTime> modify) {
  nfs4::Attributes attributes;
  if (access) attributes.time_delegated_access = nfs4::Time::from(*access);
  if (modify) attributes.time_delegated_modify = nfs4::Time::from(*modify);
  return attributes;
}

class DelegatedTimesTest : public DelegationCase {
 protected:
  nfs4::Stateid holds_to_write() {
    return delegation<DelegationType::kWriteAttributes>(kWantsWrite | kWithTimes);
  }
  nfs4::Stateid holds_to_read() {
    return delegation<DelegationType::kReadAttributes>(kWantsRead | kWithTimes);
  }
  Inode file() { return *server_->names->get(server_->handles->decode(file_)->handle.inode).value(); }
  WallTime now() { return host_.clock.wall_now(); }
  Status set(TestClient& who, const nfs4::Stateid& stateid, const nfs4::Attributes& attributes) {
    nfs4::SetAttributesArguments arguments;
    arguments.stateid = stateid;
    arguments.attributes = attributes;
    return who.status({handle(), arguments});
  }
  void says(uint64_t size, uint64_t change, const nfs4::Attributes& told) {
    nfs4::CallbackGetAttributesResult result;
    result.attributes = told;
    result.attributes.size = size;
    result.attributes.change = change;
    holder_->attributes = result;
  }
  nfs4::Attributes see(TestClient& who, Attribute one, Attribute other) {
    const auto results = who.call({handle(), nfs4::GetAttributesArguments{nfs4::Bitmap::of(one, other)}});
    EXPECT_EQ(results.status, Status::kOk);
    return response_at<nfs4::GetAttributesResponse>(results, 1).result.attributes;
  }
};

TEST_F(DelegatedTimesTest, WhoAsksKeepsThem) {
  begin();
  EXPECT_EQ(give_back(holds_to_read()), Status::kOk);
  EXPECT_EQ(give_back(holds_to_write()), Status::kOk);
  EXPECT_EQ(give_back(delegation()), Status::kOk) << "and nobody else";
  write_delegation();
}

TEST_F(DelegatedTimesTest, NotWhereHeMayNotTellThem) {
  auto exported = TestServer::default_export();
  begin();
  exported.read_only = true;
  start(true, {exported});
  holder_->join(false);
  const auto opened = open(*holder_, "f", kWantsRead | kWithTimes);
  EXPECT_TRUE(opened.result.delegation.is<DelegationType::kRead>());
}

TEST_F(DelegatedTimesTest, HeTellsThemByItsStateid) {
  begin();
  const auto held = holds_to_write();
  const Inode before = file();
  pass(Milliseconds(1000));
  const WallTime accessed = now();
  const WallTime changed{accessed.seconds, accessed.nanoseconds + 5};
  pass(Milliseconds(1000));
  EXPECT_EQ(set(*holder_, held, times(accessed, changed)), Status::kOk);
  EXPECT_EQ(file().atime, accessed);
  EXPECT_EQ(file().mtime, changed);
  EXPECT_EQ(file().ctime, changed) << "not now";
  EXPECT_GT(file().change, before.change);
  const uint64_t change = file().change;
  EXPECT_EQ(set(*holder_, held, times(accessed, changed)), Status::kOk);
  EXPECT_EQ(file().change, change) << "that is on record already";
  EXPECT_EQ(give_back(held), Status::kOk);
  EXPECT_EQ(set(*holder_, held, times(accessed, changed)), Status::kBadStateid);
}

TEST_F(DelegatedTimesTest, AnAccessIsNoChange) {
  begin();
  const auto held = holds_to_read();
  const auto other = open(*other_, "f", kWantsRead | kWithTimes);
  ASSERT_TRUE(other.result.delegation.is<DelegationType::kReadAttributes>());
  const Inode before = file();
  pass(Milliseconds(2000));
  const WallTime later = now();
  EXPECT_EQ(set(*holder_, held, times(later, {})), Status::kOk);
  EXPECT_EQ(file().atime, later);
  EXPECT_EQ(file().ctime, before.ctime);
  EXPECT_EQ(file().change, before.change);
  turns();
  EXPECT_TRUE(other_->recalls.empty()) << "nor is it told to the others";
  const auto& theirs = *other.result.delegation.get_if<DelegationType::kReadAttributes>();
  EXPECT_EQ(set(*other_, theirs.stateid, times(before.atime, {})), Status::kOk);
  EXPECT_EQ(file().atime, later) << "theirs was before";
}

TEST_F(DelegatedTimesTest, NoneBeforeItWasGivenAndNoneToCome) {
  begin();
  pass(Milliseconds(5000));
  const auto held = holds_to_write();
  const Inode before = file();
  const WallTime earlier{before.mtime.seconds - 1, 0};
  EXPECT_EQ(set(*holder_, held, times(earlier, earlier)), Status::kOk);
  EXPECT_EQ(file().atime, before.atime);
  EXPECT_EQ(file().mtime, before.mtime);
  EXPECT_EQ(file().change, before.change);
  const WallTime to_come{now().seconds + 100, 0};
  EXPECT_EQ(set(*holder_, held, times(to_come, to_come)), Status::kOk);
  EXPECT_EQ(file().atime, now());
  EXPECT_EQ(file().mtime, now());
  EXPECT_EQ(file().ctime, now());
}

// What he wrote through the server it dates itself; he knows better.
TEST_F(DelegatedTimesTest, OneBeforeTheServersOwnIsTakenIfItIsNotBeforeTheDelegation) {
  begin();
  const auto held = holds_to_write();
  pass(Milliseconds(1000));
  const WallTime his = now();
  pass(Milliseconds(1000));
  ASSERT_TRUE(server_->names->touch(file().id));
  const Inode before = file();
  EXPECT_EQ(set(*holder_, held, times({}, his)), Status::kOk);
  EXPECT_EQ(file().mtime, his);
  EXPECT_EQ(file().ctime, before.ctime) << "which does not go back";
  EXPECT_GT(file().change, before.change);
}

TEST_F(DelegatedTimesTest, ThoseThatAProgramHasSetAreNotClamped) {
  begin();
  const auto held = holds_to_write();
  const WallTime to_come{now().seconds + 1000, 0};
  ASSERT_TRUE(server_->names->update(file().id, {.atime = to_come, .mtime = to_come}));
  EXPECT_EQ(set(*holder_, held, times(to_come, to_come)), Status::kOk);
  EXPECT_EQ(file().mtime, to_come);
  EXPECT_EQ(file().atime, to_come);
}

TEST_F(DelegatedTimesTest, NobodyElseTellsThem) {
  begin();
  const auto opened = open(*holder_, "g", kShareBoth);
  const auto held = holds_to_read();
  EXPECT_EQ(set(*holder_, held, times({}, now())), Status::kOpenMode) << "he changes nothing";
  EXPECT_EQ(set(*other_, held, times(now(), {})), Status::kBadStateid);
  EXPECT_EQ(set(*holder_, {}, times(now(), {})), Status::kBadStateid);
  EXPECT_EQ(set(*holder_, opened.result.stateid, times(now(), {})), Status::kBadStateid);
  EXPECT_EQ(set(*holder_, held, times(WallTime{1, 1'000'000'000}, {})), Status::kInval);
  EXPECT_EQ(give_back(held), Status::kOk);
  const auto plain = write_delegation();
  EXPECT_EQ(set(*holder_, plain, times({}, now())), Status::kBadStateid) << "he has not asked for that";
}

TEST_F(DelegatedTimesTest, TheyCanOnlyBeSetAndOnlyOfWhatIsThere) {
  begin();
  holds_to_write();
  for (const Attribute one : {Attribute::kTimeDelegatedAccess, Attribute::kTimeDelegatedModify}) {
    const nfs4::GetAttributesArguments get{nfs4::Bitmap::of(one)};
    EXPECT_EQ(holder_->status({handle(), get}), Status::kInval);
    nfs4::GetAttributesArguments supported{
        nfs4::Bitmap::of(Attribute::kSupportedAttributes, Attribute::kSupportedExclusiveCreate)};
    const auto results = holder_->call({handle(), supported});
    const auto& told = response_at<nfs4::GetAttributesResponse>(results, 1).result.attributes;
    EXPECT_TRUE(told.supported_attributes->test(one));
    EXPECT_FALSE(told.supported_exclusive_create->test(one));
  }
  nfs4::VerifyArguments verify;
  verify.attributes = times(now(), {});
  EXPECT_EQ(holder_->status({handle(), verify}), Status::kInval);
  auto make = holder_->open_arguments("new", kShareBoth);
  make.how = creating(create_how(nfs4::CreateMode::kUnchecked, times({}, now())));
  EXPECT_EQ(holder_->open(make).status, Status::kInval);
}

// --- CB_GETATTR ---

TEST_F(DelegatedTimesTest, HeIsAskedForThem) {
  begin();
  holds_to_write();
  const Inode before = file();
  pass(Milliseconds(1000));
  const WallTime his = now();
  pass(Milliseconds(1000));
  says(5, before.change + 1, times(his, his));
  const auto seen = see(*other_, Attribute::kTimeModify, Attribute::kTimeMetadata);
  ASSERT_EQ(holder_->questions.size(), 1U);
  EXPECT_EQ(holder_->questions[0].requested,
            nfs4::Bitmap::of(Attribute::kChange, Attribute::kSize, Attribute::kTimeDelegatedAccess,
                             Attribute::kTimeDelegatedModify));
  EXPECT_EQ(seen.time_modify, nfs4::Time::from(his));
  EXPECT_EQ(seen.time_metadata, nfs4::Time::from(his));
  EXPECT_EQ(file().atime, his);
  const WallTime to_come{now().seconds + 100, 0};
  says(5, before.change + 1, times(to_come, to_come));
  const auto later = see(*other_, Attribute::kTimeModify, Attribute::kTimeAccess);
  EXPECT_EQ(later.time_modify, nfs4::Time::from(now()));
  EXPECT_EQ(later.time_access, nfs4::Time::from(now()));
}

TEST_F(DelegatedTimesTest, WhatHeHasOnlyReadIsShownAndNotKept) {
  begin();
  holds_to_write();
  const Inode before = file();
  pass(Milliseconds(1000));
  const WallTime his = now();
  says(0, before.change, times(his, before.mtime));
  const auto seen = see(*other_, Attribute::kTimeAccess, Attribute::kChange);
  EXPECT_EQ(seen.time_access, nfs4::Time::from(his));
  EXPECT_EQ(seen.change, before.change);
  EXPECT_EQ(file().atime, before.atime);
}

TEST_F(DelegatedTimesTest, WhoKeepsNoneIsNotBelieved) {
  begin();
  write_delegation();
  const Inode before = file();
  const WallTime his = now();
  pass(Milliseconds(1000));
  says(5, before.change + 1, times(his, his));
  const auto access = see(*other_, Attribute::kTimeAccess, Attribute::kMode);
  EXPECT_TRUE(holder_->questions.empty());
  EXPECT_EQ(access.time_access, nfs4::Time::from(before.atime));
  const auto seen = see(*other_, Attribute::kTimeModify, Attribute::kSize);
  EXPECT_EQ(holder_->questions[0].requested, nfs4::Bitmap::of(Attribute::kChange, Attribute::kSize));
  EXPECT_EQ(seen.time_modify, nfs4::Time::from(now()));
}

// --- restarts ---

TEST_F(DelegatedTimesTest, ARestartedDaemonTakesThemAsWell) {
  begin();
  const auto held = holds_to_write();
  start();
  holder_->join(false);
  other_->join(false);
  pass(Milliseconds(1000));
  EXPECT_EQ(set(*holder_, held, times(now(), now())), Status::kOk);
  EXPECT_EQ(file().mtime, now());
  says(0, 0, times({}, {}));
  see(*other_, Attribute::kSize, Attribute::kChange);
  EXPECT_TRUE(holder_->questions.at(0).requested.test(Attribute::kTimeDelegatedModify));
  EXPECT_EQ(give_back(held), Status::kOk);
  const auto to_read = holds_to_read();
  start();
  holder_->join(false);
  EXPECT_EQ(set(*holder_, to_read, times(now(), {})), Status::kOk);
}

TEST_F(DelegatedTimesTest, OfOneWithoutThemItTakesNone) {
  begin();
  const auto held = write_delegation();
  start();
  holder_->join(false);
  EXPECT_EQ(set(*holder_, held, times({}, now())), Status::kBadStateid);
}

TEST_F(DelegatedTimesTest, AfterARebootTheyAreReclaimed) {
  begin();
  holds_to_write();
  start(false);
  holder_->join(false);
  auto arguments = holder_->open_arguments("", kWantsWrite | kWithTimes);
  arguments.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kPrevious>(DelegationType::kWriteAttributes);
  const auto results = holder_->call({handle(), arguments});
  ASSERT_EQ(results.status, Status::kOk);
  const auto& given = response_at<nfs4::OpenResponse>(results, 1).result.delegation;
  ASSERT_TRUE(given.is<DelegationType::kWriteAttributes>());
  pass(Milliseconds(1000));
  EXPECT_EQ(set(*holder_, given.get_if<DelegationType::kWriteAttributes>()->stateid, times({}, now())),
            Status::kOk);
  EXPECT_EQ(file().mtime, now());
}

}  // namespace
}  // namespace pnfsrdma::mds::testing

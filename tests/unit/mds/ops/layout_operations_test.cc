// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/layout_operations_case.h"

// The layout operations as the network reaches them: what their arguments may be and how a refusal is called.
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::IoMode;
using nfs4::Status;

constexpr uint32_t kOtherLayoutType = 1;  // LAYOUT4_NFSV4_1_FILES

// --- LAYOUTERROR (RFC 7862, 15.6) ---

TEST_F(LayoutOperations, LayoutErrorSaysWhoDoesNotReachABrick) {
  const nfs4::LayoutErrorArguments said = complaint(layout());
  EXPECT_EQ(complain(said).status, Status::kOk);
  const auto broken = module.paths().current(host.clock.now());
  ASSERT_EQ(broken.size(), 1u);
  EXPECT_EQ(broken[0].brick, module.bricks().all().front()->record().uuid);
  EXPECT_EQ(broken[0].report.error, Status::kNxIo);
}

TEST_F(LayoutOperations, LayoutErrorIsForWhoHoldsALayoutOfTheFile) {
  nfs4::LayoutErrorArguments said = complaint(file.stateid);
  EXPECT_EQ(complain(said).status, Status::kBadStateid);
  said.stateid = layout();
  said.stateid.other[11] ^= std::byte{1};
  EXPECT_EQ(complain(said).status, Status::kBadStateid);
  said.length = 0;
  EXPECT_EQ(complain(said).status, Status::kInval);
  EXPECT_TRUE(module.paths().current(host.clock.now()).empty());
}

TEST_F(LayoutOperations, LayoutErrorOfOtherDevicesIsNotKept) {
  nfs4::LayoutErrorArguments said = complaint(layout());
  said.errors[0].device[0] ^= std::byte{1};
  EXPECT_EQ(complain(said).status, Status::kOk);
  EXPECT_TRUE(module.paths().current(host.clock.now()).empty());
}

TEST_F(LayoutOperations, ThatABrickWhichIsAwayIsNotReachedIsNoNews) {
  const nfs4::LayoutErrorArguments said = complaint(layout());
  plug.down(kBrick);
  for (int i = 0; i < 60; ++i) host.turn();
  EXPECT_NE(complain(said).status, Status::kServerFault);
  EXPECT_TRUE(module.paths().current(host.clock.now()).empty());
}

// --- LAYOUTSTATS (RFC 7862, 15.7) ---

nfs4::LayoutStatisticsArguments io_report(const nfs4::Stateid& stateid) {
  nfs4::LayoutStatisticsArguments said{.offset = 0, .length = nfs4::kLengthToEnd, .stateid = stateid};
  said.read = {.count = 3, .bytes = 3000};
  said.write = {.count = 1, .bytes = 500};
  said.update.layout_type = nfs4::kLayoutTypePmem;
  return said;
}

TEST_F(LayoutOperations, LayoutStatisticsAreSumsOfTheLayoutTheClientAndAll) {
  const auto say = [&](const File& of, const nfs4::Stateid& stateid) {
    return on<nfs4::LayoutStatisticsResponse>(client, of.handle, io_report(stateid)).status;
  };
  const File other = open("other", kShareBoth);
  const auto held = on<nfs4::LayoutGetResponse>(client, other.handle, wish(other.stateid));
  ASSERT_EQ(held.status, Status::kOk);
  const nfs4::Stateid first = layout();
  EXPECT_EQ(say(file, first), Status::kOk);
  EXPECT_EQ(say(file, first), Status::kOk);
  EXPECT_EQ(say(other, held.result.stateid), Status::kOk);
  const InodeId inode = server.names->lookup(kRootInode, "f").value()->id;
  EXPECT_EQ(module.table().find(inode, client.id)->reported(), (ReportedIo{6, 6000, 2, 1000}));
  EXPECT_EQ(server.clients.find(client.id)->reported, (ReportedIo{9, 9000, 3, 1500}));
  EXPECT_EQ(server.counters.reported, (ReportedIo{9, 9000, 3, 1500}));
}

TEST_F(LayoutOperations, LayoutStatisticsAreForWhoHoldsALayoutOfTheFile) {
  const nfs4::Stateid held = layout();
  const auto say = [&](const nfs4::LayoutStatisticsArguments& said) {
    return on<nfs4::LayoutStatisticsResponse>(client, file.handle, said).status;
  };
  auto said = io_report(held);
  said.update.layout_type = kOtherLayoutType;
  EXPECT_EQ(say(said), Status::kUnknownLayoutType);
  said = io_report(held);
  said.update.body = Bytes(4);
  EXPECT_EQ(say(said), Status::kInval);
  said = io_report(held);
  said.length = 0;
  EXPECT_EQ(say(said), Status::kInval);
  said = io_report(held);
  said.read.count = 0;
  EXPECT_EQ(say(said), Status::kInval) << "bytes, but no read";
  EXPECT_EQ(say(io_report(file.stateid)), Status::kBadStateid) << "an open's";
  said = io_report(held);
  ++said.stateid.seqid;
  EXPECT_EQ(say(said), Status::kBadStateid) << "of the future";
  TestClient stranger(server, "stranger");
  stranger.connect();
  EXPECT_EQ(on<nfs4::LayoutStatisticsResponse>(stranger, file.handle, io_report(held)).status,
            Status::kBadStateid);
  const File other = open("other", kShareBoth);
  EXPECT_EQ(on<nfs4::LayoutStatisticsResponse>(client, other.handle, io_report(held)).status,
            Status::kBadStateid);
  EXPECT_EQ(server.counters.reported, ReportedIo{});
  ASSERT_EQ(give_back(giving_back(held)).status, Status::kOk);
  EXPECT_EQ(say(io_report(held)), Status::kBadStateid);
}

TEST_F(LayoutOperations, LayoutStatisticsOfALiarSpoilNoSums) {
  auto said = io_report(layout());
  for (const nfs4::IoInfo& lie : {nfs4::IoInfo{UINT64_MAX, 1}, nfs4::IoInfo{1, UINT64_MAX}}) {
    said.read = lie;
    EXPECT_EQ(on<nfs4::LayoutStatisticsResponse>(client, file.handle, said).status, Status::kInval);
  }
  EXPECT_EQ(server.counters.reported, ReportedIo{});
}

// --- IO_ADVISE (RFC 7862, 15.5) ---

TEST_F(LayoutOperations, NoHintIsHonouredAndNoneIsWrong) {
  nfs4::IoAdviseArguments hint{.stateid = file.stateid, .offset = 0, .count = 4096, .hints = {}};
  hint.hints.set(nfs4::IoAdvice::kWillNeed);
  const auto advise = [&] { return on<nfs4::IoAdviseResponse>(client, file.handle, hint); };
  EXPECT_EQ(advise().status, Status::kOk);
  EXPECT_TRUE(advise().result.hints.none());
  hint.offset = 1;
  hint.count = UINT64_MAX;
  EXPECT_EQ(advise().status, Status::kInval);
  hint.offset = 0;
  hint.stateid.other[11] ^= std::byte{1};
  EXPECT_EQ(advise().status, Status::kBadStateid);
}

// --- LAYOUTGET (RFC 8881, 18.43) ---

TEST_F(LayoutOperations, LayoutGetWantsOurTypeAndAMode) {
  auto arguments = wish(file.stateid);
  arguments.layout_type = kOtherLayoutType;
  EXPECT_EQ(get(arguments).status, Status::kUnknownLayoutType);
  EXPECT_EQ(get(wish(file.stateid, IoMode::kAny)).status, Status::kBadIoMode);
  EXPECT_TRUE(brick.grants.empty());
  EXPECT_EQ(get(wish(file.stateid)).status, Status::kOk);
}

TEST_F(LayoutOperations, LayoutGetWantsARangeThatExists) {
  auto arguments = wish(file.stateid);
  arguments.length = 0;
  arguments.min_length = 0;
  EXPECT_EQ(get(arguments).status, Status::kInval);
  arguments.length = kFileSize;
  arguments.min_length = kFileSize + 1;
  EXPECT_EQ(get(arguments).status, Status::kInval);
  arguments.min_length = 1;
  arguments.offset = UINT64_MAX - 1;
  EXPECT_EQ(get(arguments).status, Status::kInval);
  arguments.offset = 0;
  arguments.length = arguments.min_length = UINT64_MAX;
  EXPECT_EQ(get(arguments).status, Status::kBadLayout);  // all of a file to be written cannot be had
  EXPECT_TRUE(brick.grants.empty());
}

TEST_F(LayoutOperations, LayoutGetGoesNoFurtherThanTheOpen) {
  const File read_only = open("r", kShareRead);
  open(client, "w", kShareWrite, 0222);
  client.who.uid = 1000;  // may write it, and by no means read it
  const File write_only = open("w", kShareWrite);
  const auto status = [&](const File& of, IoMode mode) {
    return on<nfs4::LayoutGetResponse>(client, of.handle, wish(of.stateid, mode)).status;
  };
  EXPECT_EQ(status(read_only, IoMode::kReadWrite), Status::kOpenMode);
  EXPECT_EQ(status(write_only, IoMode::kRead), Status::kOpenMode);
  // A handle to write by is one to read by. The server takes the data by WRITE.
  EXPECT_EQ(status(write_only, IoMode::kReadWrite), Status::kLayoutUnavailable);
  EXPECT_TRUE(brick.grants.empty());
  client.who.uid = 0;  // may read it
  EXPECT_EQ(status(write_only, IoMode::kReadWrite), Status::kOk);
}

TEST_F(LayoutOperations, ALayoutStateidDoesNotMakeAWriteOnlyOpenReadable) {
  open(client, "w", kShareWrite, 0222);
  client.who.uid = 1000;
  const File write_only = open("w", kShareWrite);
  client.who.uid = 0;
  auto some = wish(write_only.stateid);
  some.length = some.min_length = 4096;
  const auto held = on<nfs4::LayoutGetResponse>(client, write_only.handle, some);
  ASSERT_EQ(held.status, Status::kOk);
  client.who.uid = 1000;
  auto more = wish(held.result.stateid);
  more.offset = uint64_t{64} << 20;
  EXPECT_EQ(on<nfs4::LayoutGetResponse>(client, write_only.handle, more).status, Status::kLayoutUnavailable);
}

// --- the set-id bits (POSIX write(2)) ---

TEST_F(LayoutOperations, NoUnprivilegedWriterHasAHandleOfAFileWithSetIdBits) {
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(04777);
  ASSERT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, set}), Status::kOk);
  client.who.uid = 1000;
  EXPECT_EQ(get(wish(file.stateid)).status, Status::kLayoutTryLater);
  EXPECT_TRUE(brick.grants.empty());
  nfs4::WriteArguments write{.stateid = file.stateid, .stable = nfs4::StableHow::kFileSync};
  write.data = nfs4::Data(Bytes(10));
  ASSERT_EQ(on<nfs4::WriteResponse>(client, file.handle, write).status, Status::kOk);
  EXPECT_EQ(server.names->lookup(kRootInode, "f").value()->mode, 0777U);
  EXPECT_EQ(get(wish(file.stateid)).status, Status::kOk);
}

TEST_F(LayoutOperations, SetIdBitsComeWhenNobodyWritesByAHandleAnyMore) {
  layout();
  ASSERT_EQ(brick.grants.size(), 1u);
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(0755);
  EXPECT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, set}), Status::kOk);
  EXPECT_EQ(brick.grants.size(), 1u);
  set.attributes = mode_attribute(04755);
  const auto reply =
      server.begin({client.next_sequence(), nfs4::PutFileHandleArguments{file.handle}, set}, client.who);
  for (int i = 0; i < 60; ++i) host.turn();
  EXPECT_EQ(*reply, nullptr);
  const InodeId inode = server.names->lookup(kRootInode, "f").value()->id;
  EXPECT_EQ((*server.names->get(inode))->mode, 0755U);
  module.layouts().give_back(client.id, inode, {0, kEndOfFile}, IoMode::kAny, [] {});
  for (int i = 0; i < 60; ++i) host.turn();
  ASSERT_NE(*reply, nullptr);
  EXPECT_EQ(xdr::decode_from<nfs4::CompoundResults>(**reply)->status, Status::kOk);
  EXPECT_TRUE(brick.grants.empty());
  EXPECT_EQ((*server.names->get(inode))->mode, 04755U);
}

TEST_F(LayoutOperations, AnOverwriteByRdmaClearsTheSetIdBitsAtLayoutCommit) {
  nfs4::WriteArguments write{.stateid = file.stateid, .stable = nfs4::StableHow::kFileSync};
  write.data = nfs4::Data(Bytes(100));
  ASSERT_EQ(on<nfs4::WriteResponse>(client, file.handle, write).status, Status::kOk);
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(06777);
  ASSERT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, set}), Status::kOk);
  const nfs4::Stateid held = layout();  // root's
  client.who.uid = 1000;
  ASSERT_EQ(commit(news(held)).status, Status::kOk);
  EXPECT_EQ(server.names->lookup(kRootInode, "f").value()->size, 100u);
  EXPECT_EQ(server.names->lookup(kRootInode, "f").value()->mode, 0777U);
}

// --- quotas ---

TEST_F(LayoutOperations, ASizeAndAnOwnerThatAreSetTogetherChargeTheNewOwnerWithWhatIsLeft) {
  constexpr uint64_t kBytes = 64 << 10;
  Quotas& quotas = server.names->quotas();
  ASSERT_TRUE(quotas.begin());
  while (!quotas.counted()) ASSERT_TRUE(quotas.count(*quotas.next_slice(100), {}));
  nfs4::WriteArguments write{.stateid = file.stateid, .stable = nfs4::StableHow::kFileSync};
  write.data = nfs4::Data(Bytes(kBytes));
  ASSERT_EQ(on<nfs4::WriteResponse>(client, file.handle, write).status, Status::kOk);
  const auto used = [&](uint64_t user) { return quotas.usage({QuotaKind::kUser, user})->space.used; };
  const auto set = [&](uint64_t size, uint32_t user) {
    nfs4::SetAttributesArguments set{.stateid = file.stateid};
    set.attributes.size = size;
    set.attributes.owner = std::to_string(user);
    return client.status({nfs4::PutFileHandleArguments{file.handle}, set});
  };
  EXPECT_EQ(set(kBytes, 7), Status::kOk);
  EXPECT_EQ(used(0), 0U);
  EXPECT_EQ(used(7), kBytes);
  for (const uint64_t user : {7, 8})
    ASSERT_TRUE(quotas.set_limits({QuotaKind::kUser, user}, {.space = {.hard = 8192}, .inodes = {}}, {}));
  EXPECT_EQ(set(16'384, 8), Status::kDQuot);
  EXPECT_EQ(server.names->lookup(kRootInode, "f").value()->size, kBytes) << "nothing has changed";
  EXPECT_EQ(set(8192, 8), Status::kOk);
  EXPECT_EQ(used(7), 0U);
  EXPECT_EQ(used(8), 8192U);
  EXPECT_EQ(set(1 << 20, 7), Status::kOk);
  EXPECT_EQ(used(7), 8192U);
  EXPECT_EQ(used(8), 0U);
}

// --- COMMIT and LAYOUTCOMMIT: by an open for writing, or by permission ---

TEST_F(LayoutOperations, CommitIsForWhoMayWrite) {
  const nfs4::CommitArguments all{};
  EXPECT_EQ(on<nfs4::CommitResponse>(client, file.handle, all).status, Status::kOk);
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(0644);
  ASSERT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, set}), Status::kOk);
  TestClient stranger(server, "stranger");
  stranger.who = {.uid = 1000, .gid = 1000, .groups = {}};
  stranger.connect();
  EXPECT_EQ(on<nfs4::CommitResponse>(stranger, file.handle, all).status, Status::kAccess);
  // Its client has it open for writing: a descriptor may be passed on.
  client.who.uid = 1000;
  EXPECT_EQ(on<nfs4::CommitResponse>(client, file.handle, all).status, Status::kOk);
}

TEST_F(LayoutOperations, LayoutCommitIsForWhoMayWrite) {
  const nfs4::Stateid held = layout();
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(0644);
  ASSERT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, set}), Status::kOk);
  client.who.uid = 1000;
  EXPECT_EQ(commit(news(held)).status, Status::kOk);
  const nfs4::CloseArguments close{.open_stateid = file.stateid};
  ASSERT_EQ(client.status({nfs4::PutFileHandleArguments{file.handle}, close}), Status::kOk);
  EXPECT_EQ(commit(news(held)).status, Status::kAccess);
}

TEST_F(LayoutOperations, AReadOnlyExportTakesNoCommit) {
  const nfs4::Stateid held = layout();
  Export read_only = *server.exports.find(1);
  read_only.read_only = true;
  server.exports.change(read_only);
  EXPECT_EQ(on<nfs4::CommitResponse>(client, file.handle, nfs4::CommitArguments{}).status, Status::kRoFs);
  EXPECT_EQ(commit(news(held)).status, Status::kRoFs);
}

TEST_F(LayoutOperations, LayoutGetUnderALayoutStateidGoesNoFurtherThanTheOpensEither) {
  const nfs4::Stateid held = layout();
  const auto closed = client.call(
      {nfs4::PutFileHandleArguments{file.handle}, nfs4::CloseArguments{.open_stateid = file.stateid}});
  ASSERT_EQ(closed.status, Status::kOk);
  EXPECT_EQ(get(wish(held)).status, Status::kOpenMode);
}

TEST_F(LayoutOperations, LayoutGetWantsAStateidOfThisClientAndFile) {
  nfs4::Stateid unknown{.seqid = 1};
  unknown.other.fill(std::byte{0x5a});
  EXPECT_EQ(get(wish(unknown)).status, Status::kBadStateid);
  EXPECT_EQ(get(wish(nfs4::Stateid{})).status, Status::kBadStateid);  // anonymous
  const nfs4::Stateid held = layout();
  const File other = open("other", kShareBoth);
  EXPECT_EQ(on<nfs4::LayoutGetResponse>(client, other.handle, wish(held)).status, Status::kBadStateid);
  TestClient stranger(server, "stranger");
  stranger.connect();
  const File theirs = open(stranger, "f", kShareBoth);
  EXPECT_EQ(on<nfs4::LayoutGetResponse>(stranger, theirs.handle, wish(held)).status, Status::kBadStateid);
}

TEST_F(LayoutOperations, LayoutStateidsGrowOldAndAreNeverFromTheFuture) {
  const nfs4::Stateid first = layout();
  nfs4::Stateid future = first;
  ++future.seqid;
  EXPECT_EQ(get(wish(future)).status, Status::kBadStateid);
  nfs4::Stateid none = first;
  none.seqid = 0;
  EXPECT_EQ(get(wish(none)).status, Status::kBadStateid);
  // As many steps as the client can have under way: one COMPOUND of 16 operations here.
  nfs4::Stateid held = first;
  for (int i = 0; i < 15; ++i) {
    const auto answer = get(wish(held));
    ASSERT_EQ(answer.status, Status::kOk);
    held = answer.result.stateid;
  }
  EXPECT_EQ(held.seqid, first.seqid + 15);
  const auto last = get(wish(first));
  EXPECT_EQ(last.status, Status::kOk);
  EXPECT_EQ(get(wish(first)).status, Status::kOldStateid);
  EXPECT_EQ(commit(news(first)).status, Status::kOldStateid);
  EXPECT_EQ(give_back(giving_back(first)).status, Status::kOldStateid);
  EXPECT_EQ(give_back(giving_back(last.result.stateid)).status, Status::kOk);
}

TEST_F(LayoutOperations, LayoutGetThatDoesNotFitIsTooSmall) {
  auto arguments = wish(file.stateid);
  arguments.max_count = 60;
  EXPECT_EQ(get(arguments).status, Status::kTooSmall);
  arguments.max_count = 4096;
  EXPECT_EQ(get(arguments).status, Status::kOk);
}

TEST_F(LayoutOperations, LayoutGetIsForRegularFiles) {
  const auto root = client.call({nfs4::PutRootFileHandleArguments{}, wish(file.stateid)});
  EXPECT_EQ(root.status, Status::kIsDir);
  EXPECT_EQ(client.status({wish(file.stateid)}), Status::kNoFileHandle);
}

TEST_F(LayoutOperations, WithoutABrickALayoutIsForLater) {
  plug.down(kBrick);
  EXPECT_EQ(get(wish(file.stateid)).status, Status::kLayoutTryLater);
}

// --- LAYOUTCOMMIT (18.42) ---

TEST_F(LayoutOperations, LayoutCommitChecksItsArguments) {
  const nfs4::Stateid held = layout();
  auto arguments = news(held);
  arguments.update.layout_type = kOtherLayoutType;
  EXPECT_EQ(commit(arguments).status, Status::kUnknownLayoutType);
  arguments = news(held);
  arguments.reclaim = true;
  EXPECT_EQ(commit(arguments).status, Status::kNoGrace);
  arguments = news(held);
  arguments.length = 0;
  EXPECT_EQ(commit(arguments).status, Status::kInval);
  arguments = news(held);
  arguments.offset = UINT64_MAX - 10;
  EXPECT_EQ(commit(arguments).status, Status::kInval);
  arguments = news(held);
  arguments.time_modify = nfs4::Time{.seconds = 1, .nanoseconds = 1'000'000'000};
  EXPECT_EQ(commit(arguments).status, Status::kInval);
  arguments = news(held);
  arguments.last_write_offset = kFileSize;  // behind the range
  EXPECT_EQ(commit(arguments).status, Status::kInval);
  EXPECT_EQ(commit(news(file.stateid)).status, Status::kBadStateid);
  EXPECT_EQ(server.names->lookup(kRootInode, "f").value()->size, 0u);
  const auto committed = commit(news(held));
  EXPECT_EQ(committed.status, Status::kOk);
  EXPECT_EQ(committed.result.new_size, 100u);
}

TEST_F(LayoutOperations, LayoutCommitChecksWhatIsToBeFlushed) {
  const nfs4::Stateid held = layout();
  auto arguments = news(held);
  arguments.update.body = Bytes(3, std::byte{1});
  EXPECT_EQ(commit(arguments).status, Status::kBadXdr);
  const auto flushing = [&](const nfs4::PersistRange& range) {
    nfs4::LayoutUpdate update;
    update.persist = {range};
    arguments.update.body = xdr::encode_to_bytes(update);
    return commit(arguments).status;
  };
  EXPECT_EQ(flushing({0, 0}), Status::kInval);
  EXPECT_EQ(flushing({0, UINT64_MAX}), Status::kInval);
  EXPECT_EQ(flushing({UINT64_MAX - 5, 10}), Status::kInval);
  EXPECT_EQ(flushing({uint64_t{1} << 40, 10}), Status::kBadLayout);
  EXPECT_EQ(brick.count("persist"), 0u);
  EXPECT_EQ(flushing({0, 100}), Status::kOk);
  EXPECT_EQ(brick.count("persist"), 1u);
}

TEST_F(LayoutOperations, LayoutCommitNeedsAWriteLayoutOfTheRange) {
  const nfs4::Stateid held = layout();
  auto far = news(held);
  far.offset = uint64_t{1} << 40;
  far.last_write_offset = far.offset + 5;
  EXPECT_EQ(commit(far).status, Status::kBadLayout);
  ASSERT_EQ(commit(news(held)).status, Status::kOk);
  ASSERT_EQ(give_back(giving_back(held)).status, Status::kOk);
  auto short_wish = wish(file.stateid, IoMode::kRead);
  short_wish.length = short_wish.min_length = 100;
  const auto reading = get(short_wish);
  ASSERT_EQ(reading.status, Status::kOk);
  EXPECT_EQ(commit(news(reading.result.stateid)).status, Status::kBadIoMode);
  EXPECT_EQ(commit(news(held)).status, Status::kBadStateid);
}

// --- LAYOUTRETURN (18.44) ---

TEST_F(LayoutOperations, LayoutReturnChecksItsArguments) {
  const nfs4::Stateid held = layout();
  auto arguments = giving_back(held);
  arguments.layout_type = kOtherLayoutType;
  EXPECT_EQ(give_back(arguments).status, Status::kUnknownLayoutType);
  arguments = giving_back(held);
  arguments.reclaim = true;
  EXPECT_EQ(give_back(arguments).status, Status::kNoGrace);
  EXPECT_EQ(give_back(giving_back(held, 0)).status, Status::kInval);
  EXPECT_EQ(
      give_back(giving_back(nfs4::LayoutReturnFile{.offset = UINT64_MAX - 1, .length = 5, .stateid = held}))
          .status,
      Status::kInval);
  nfs4::LayoutReturnFile with_body{.length = kFileSize, .stateid = held};
  with_body.body = Bytes(4);
  EXPECT_EQ(give_back(giving_back(std::move(with_body))).status, Status::kInval);
  EXPECT_EQ(give_back(giving_back(file.stateid)).status, Status::kBadStateid);
  EXPECT_EQ(brick.grants.size(), 1u);
}

TEST_F(LayoutOperations, LayoutReturnAndCloseEndWhatIsHeldUnderAHandleThatHasLapsed) {
  const nfs4::Stateid held = layout();
  // An export inside of this one ends its handles.
  const Export inner{.id = 7, .path = "/inner"};
  Batch batch;
  const auto change = server.handles->prepare_add(batch, inner, server.exports.all().front());
  ASSERT_TRUE(host.store.commit(batch, CommitKind::kNamespace));
  server.handles->apply(change);
  EXPECT_EQ(get(wish(file.stateid)).status, Status::kStale);
  EXPECT_EQ(commit(news(held)).status, Status::kStale);
  EXPECT_EQ(give_back(giving_back(held)).status, Status::kOk);
  EXPECT_EQ(module.table().layouts(), 0U);
  EXPECT_TRUE(module.table().dying().empty());
  EXPECT_EQ(on<nfs4::CloseResponse>(client, file.handle, nfs4::CloseArguments{0, file.stateid}).status,
            Status::kOk);
}

// The administrator is answered when all layouts under the export have ended: none may come behind that.
TEST_F(LayoutOperations, ALayoutGetThatWasUnderWayWhenExportsChangedGetsNone) {
  const auto turns = [&] {
    for (int turn = 0; turn < 60; ++turn) host.turn();
  };
  // What it answers when that has happened meanwhile.
  const auto status_behind = [&](const std::function<void()>& change) {
    brick.hold_exposures = true;
    const auto reply =
        server.begin({client.next_sequence(), nfs4::PutFileHandleArguments{file.handle}, wish(file.stateid)});
    turns();
    EXPECT_EQ(*reply, nullptr);
    change();
    brick.release();
    turns();
    EXPECT_NE(*reply, nullptr);
    return xdr::decode_from<nfs4::CompoundResults>(**reply)->status;
  };
  EXPECT_EQ(status_behind([] {}), Status::kOk);
  EXPECT_EQ(module.table().layouts(), 1U);
  const InodeId inode = server.names->lookup(kRootInode, "f").value()->id;
  module.layouts().give_back(client.id, inode, {0, kEndOfFile}, nfs4::IoMode::kAny, [] {});
  turns();
  const Export all = *server.exports.all().front();
  Export some = all;
  some.clients = {Network::parse("192.0.2.0/24").value()};
  EXPECT_EQ(status_behind([&] { server.exports.change(some); }), Status::kLayoutTryLater);
  server.exports.change(all);
  EXPECT_EQ(status_behind([&] { server.exports.remove(all.id); }), Status::kLayoutTryLater);
  EXPECT_EQ(module.table().layouts(), 0U);
  EXPECT_TRUE(brick.grants.empty());
}

TEST_F(LayoutOperations, LayoutReturnOfAPartLeavesTheStateidOfAllOfItDoesNot) {
  const nfs4::Stateid held = layout();
  const auto part = give_back(giving_back(held, 4096));
  ASSERT_EQ(part.status, Status::kOk);
  ASSERT_TRUE(part.result.stateid);
  EXPECT_EQ(part.result.stateid->seqid, held.seqid + 1);
  EXPECT_EQ(brick.grants.size(), 1u);  // a handle dies with its last byte
  const auto rest = give_back(giving_back(*part.result.stateid));
  ASSERT_EQ(rest.status, Status::kOk);
  EXPECT_FALSE(rest.result.stateid);
  EXPECT_TRUE(brick.grants.empty());
  EXPECT_EQ(give_back(giving_back(held)).status, Status::kBadStateid);
}

TEST_F(LayoutOperations, LayoutReturnOfTheFileSystemOrOfAllTakesTheClientsLayoutsAndNoOthers) {
  TestClient stranger(server, "stranger");
  stranger.connect();
  const File theirs = open(stranger, "theirs", kShareBoth);
  ASSERT_TRUE(on<nfs4::LayoutGetResponse>(stranger, theirs.handle, wish(theirs.stateid)).ok());
  const File second = open("second", kShareBoth);
  const auto take_two = [&] {
    layout();
    ASSERT_TRUE(on<nfs4::LayoutGetResponse>(client, second.handle, wish(second.stateid)).ok());
    ASSERT_EQ(brick.grants.size(), 3u);
  };
  take_two();
  EXPECT_EQ(give_back(giving_back_all<nfs4::LayoutReturnType::kFsid>()).status, Status::kOk);
  EXPECT_EQ(brick.grants.size(), 1u);
  take_two();
  // ALL needs no filehandle.
  EXPECT_EQ(client.status({giving_back_all<nfs4::LayoutReturnType::kAll>()}), Status::kOk);
  ASSERT_EQ(brick.grants.size(), 1u);
  EXPECT_EQ(brick.grants.begin()->second.client, stranger.id);
}

// --- GETDEVICEINFO (18.40) ---

TEST_F(LayoutOperations, GetDeviceInfoKnowsItsOneDevice) {
  nfs4::GetDeviceInfoArguments arguments{.layout_type = nfs4::kLayoutTypePmem, .max_count = 4096};
  EXPECT_EQ(device(arguments).status, Status::kNoEnt);
  arguments.device.fill(std::byte{7});
  EXPECT_EQ(device(arguments).status, Status::kOk);
  arguments.layout_type = kOtherLayoutType;
  EXPECT_EQ(device(arguments).status, Status::kUnknownLayoutType);
}

TEST_F(LayoutOperations, GetDeviceInfoOfEveryDeviceTellsTheLeastClass) {
  nfs4::GetDeviceInfoArguments arguments{.layout_type = nfs4::kLayoutTypePmem, .max_count = 4096};
  arguments.device = nfs4::kEveryDevice;
  const auto answer = device(arguments);
  ASSERT_EQ(answer.status, Status::kOk);
  const auto address = xdr::decode_from<nfs4::DeviceAddress>(answer.result.device_address.body);
  ASSERT_TRUE(address);
  EXPECT_EQ(to_string(address->durability), module.data().durability());
  EXPECT_TRUE(address->paths.empty());
  arguments.max_count = 8;
  EXPECT_EQ(device(arguments).status, Status::kTooSmall);
}

TEST_F(LayoutOperations, GetDeviceInfoSaysHowMuchRoomItNeeds) {
  nfs4::GetDeviceInfoArguments arguments{.layout_type = nfs4::kLayoutTypePmem, .max_count = 8};
  arguments.device.fill(std::byte{7});
  const auto small = device(arguments);
  ASSERT_EQ(small.status, Status::kTooSmall);
  arguments.max_count = small.failure.min_count - 1;
  EXPECT_EQ(device(arguments).status, Status::kTooSmall);
  arguments.max_count = small.failure.min_count;
  EXPECT_EQ(device(arguments).status, Status::kOk);
  arguments.max_count = 0;
  const auto nothing = device(arguments);
  EXPECT_EQ(nothing.status, Status::kOk);
  EXPECT_TRUE(nothing.result.device_address.body.empty());
}

// --- delegations (RFC 8881, 10.4) ---

TEST_F(DelegatedFile, AWriteWithoutAnOpenRecallsIt) {
  close();
  const auto held = delegation();
  ASSERT_TRUE(held);
  nfs4::WriteArguments write;
  write.data = nfs4::Data::view_of(as_bytes("x"));
  const auto reply = server.begin({client.next_sequence(), nfs4::PutFileHandleArguments{file.handle}, write});
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

TEST_F(DelegatedFile, ALayoutToWriteByOutlivesItsOpenAndKeepsOthersFromOne) {
  const auto written = layout();
  close();
  EXPECT_FALSE(delegation());
  EXPECT_EQ(give_back(giving_back(written)).status, Status::kOk);
  for (int turn = 0; turn < 20; ++turn) host.turn();
  EXPECT_TRUE(delegation());
}

TEST_F(DelegatedFile, ALayoutToReadByIsHadWithIt) {
  close();
  const auto held = delegation();
  ASSERT_TRUE(held);
  nfs4::CloseArguments arguments;
  arguments.open_stateid = opened_by_holder;
  ASSERT_EQ(holder.status({nfs4::PutFileHandleArguments{file.handle}, arguments}), Status::kOk);
  const auto first = on<nfs4::LayoutGetResponse>(holder, file.handle, wish(*held, IoMode::kRead));
  EXPECT_EQ(first.status, Status::kOk);
  EXPECT_EQ(
      on<nfs4::LayoutGetResponse>(holder, file.handle, wish(first.result.stateid, IoMode::kRead)).status,
      Status::kOk);
  EXPECT_EQ(on<nfs4::LayoutGetResponse>(holder, file.handle, wish(*held)).status, Status::kOpenMode);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing

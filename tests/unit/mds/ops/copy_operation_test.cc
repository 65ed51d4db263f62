// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/layout_operations_case.h"

// COPY as the network reaches it (RFC 7862, 15.2).
namespace pnfsrdma::mds::testing {
namespace {

using nfs4::Status;

class CopyOperation : public LayoutOperations {
 protected:
  CopyOperation() {
    nfs4::WriteArguments write{.stateid = file.stateid, .stable = nfs4::StableHow::kFileSync};
    write.data = nfs4::Data(Bytes(kFileSize, std::byte{7}));
    EXPECT_EQ(on<nfs4::WriteResponse>(client, file.handle, write).status, Status::kOk);
  }
  nfs4::CopyResponse copy(const File& from, const File& to, const nfs4::CopyArguments& what) {
    nfs4::CopyArguments arguments = what;
    arguments.source_stateid = from.stateid;
    arguments.target_stateid = to.stateid;
    return response_at<nfs4::CopyResponse>(
        client.call({nfs4::PutFileHandleArguments{from.handle}, nfs4::SaveFileHandleArguments{},
                     nfs4::PutFileHandleArguments{to.handle}, arguments}),
        3);
  }
  uint64_t size_of(const std::string& name) { return server.names->lookup(kRootInode, name).value()->size; }
};

TEST_F(CopyOperation, CopiesAndSaysThatItIsDurable) {
  const auto answer = copy(file, open("to", kShareBoth), {.count = 5000});
  ASSERT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(answer.result.outcome.count, 5000u);
  EXPECT_EQ(answer.result.outcome.committed, nfs4::StableHow::kFileSync);
  EXPECT_FALSE(answer.result.outcome.callback_id);
  EXPECT_TRUE(answer.result.requirements.synchronous);
  EXPECT_EQ(size_of("to"), 5000u);
}

TEST_F(CopyOperation, WithoutACountItIsAllOfTheSourceAsItWas) {
  const auto answer = copy(file, file, {.target_offset = kFileSize});
  ASSERT_EQ(answer.status, Status::kOk);
  EXPECT_EQ(answer.result.outcome.count, kFileSize);
  EXPECT_EQ(size_of("f"), 2 * kFileSize);
}

TEST_F(CopyOperation, ChecksItsRanges) {
  const File to = open("to", kShareBoth);
  EXPECT_EQ(copy(file, to, {.count = kFileSize + 1}).status, Status::kInval);
  EXPECT_EQ(copy(file, to, {.source_offset = kFileSize + 1}).status, Status::kInval);
  EXPECT_EQ(copy(file, to, {.target_offset = UINT64_MAX - 10, .count = 100}).status, Status::kInval);
  EXPECT_EQ(copy(file, file, {.target_offset = 100, .count = 200}).status, Status::kInval);
  EXPECT_EQ(copy(file, file, {.source_offset = 100, .count = 200}).status, Status::kInval);
  EXPECT_EQ(copy(file, file, {.target_offset = 200, .count = 200}).status, Status::kOk);
  EXPECT_EQ(size_of("to"), 0u);
}

TEST_F(CopyOperation, ReadsTheSavedFileAndWritesTheCurrentOneAndNoOthers) {
  const File read_only = open("r", kShareRead);
  const File write_only = open(client, "w", kShareWrite, 0222);
  EXPECT_EQ(copy(file, read_only, {.count = 10}).status, Status::kOpenMode);
  client.who.uid = 1000;
  EXPECT_EQ(copy(write_only, file, {}).status, Status::kOpenMode);
  // A stateid of another file.
  EXPECT_EQ(copy({file.handle, write_only.stateid}, write_only, {.count = 10}).status, Status::kBadStateid);
  EXPECT_EQ(size_of("r"), 0u);
  const auto unsaved = client.call({nfs4::PutFileHandleArguments{file.handle}, nfs4::CopyArguments{}});
  EXPECT_EQ(response_at<nfs4::CopyResponse>(unsaved, 1).status, Status::kNoFileHandle);
}

TEST_F(CopyOperation, IsForFilesOfThisServer) {
  nfs4::CopyArguments arguments{.count = 10};
  arguments.source_servers.push_back(
      nfs4::NetworkLocation::make<nfs4::LocationType::kName>(nfs4::Text("elsewhere")));
  EXPECT_EQ(copy(file, open("to", kShareBoth), arguments).status, Status::kNotSupp);
}

TEST_F(CopyOperation, ByAStrangerClearsTheSetIdBits) {
  const File to = open("to", kShareBoth);
  nfs4::SetAttributesArguments set;
  set.attributes = mode_attribute(04777);
  ASSERT_EQ(client.status({nfs4::PutFileHandleArguments{to.handle}, set}), Status::kOk);
  client.who.uid = 1000;
  ASSERT_EQ(copy(file, to, {.count = 100}).status, Status::kOk);
  EXPECT_EQ(server.names->lookup(kRootInode, "to").value()->mode, 0777U);
}

}  // namespace
}  // namespace pnfsrdma::mds::testing

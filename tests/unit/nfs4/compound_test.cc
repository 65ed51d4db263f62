// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/compound.h"

#include <gtest/gtest.h>

#include "tests/doubles/seeded_random.h"
#include "tests/values/equal.h"
#include "tests/values/random_operation.h"

namespace pnfsrdma::nfs4 {
namespace {

// A server that has every operation, all unsupported: what HandlesEveryOperation asks for, by one template.
struct NothingSupported {
  template <typename Arguments>
  ResponseTo<Arguments> operator()(int& count, const Arguments&) {
    ++count;
    return Status::kNotSupp;
  }
};
static_assert(HandlesEveryOperation<NothingSupported, int>);
static_assert(HandlesEveryCallback<NothingSupported, int>);

struct OnlyAccess {
  AccessResponse operator()(const AccessArguments&) { return AccessResult{}; }
};
static_assert(!HandlesEveryOperation<OnlyAccess>);

static_assert(kOperationOf<OpenArguments> == Operation::kOpen);
static_assert(kOperationOf<CallbackRecallResponse> == CallbackOperation::kCallbackRecall);

Bytes compound_of(uint32_t minor_version, std::vector<ArgumentOperation> operations) {
  return xdr::encode_to_bytes(CompoundArguments{{Tag("t"), minor_version}, std::move(operations)});
}

TEST(CompoundReader, GarbageInTheFifthOperationLeavesTheFirstFour) {
  Bytes bytes = compound_of(2, {PutRootFileHandleArguments{}, GetFileHandleArguments{},
                                SaveFileHandleArguments{}, GetFileHandleArguments{}, SeekArguments{}});
  bytes.resize(bytes.size() - 4);
  auto reader = CompoundReader::open(bytes);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->operation_count(), 5u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(reader->next().arguments.has_value());
  const CompoundReader::Item last = reader->next();
  EXPECT_EQ(last.operation, Operation::kSeek);
  ASSERT_FALSE(last.arguments.has_value());
  EXPECT_EQ(last.arguments.error(), Status::kBadXdr);
  EXPECT_EQ(reader->left(), 0u);
}

TEST(CompoundReader, ATruncatedOperationIsBadXdrUnderItsOwnNumber) {
  Bytes bytes = compound_of(1, {LookupArguments{Component("name")}});
  bytes.resize(bytes.size() - 4);
  auto reader = CompoundReader::open(bytes);
  const CompoundReader::Item item = reader->next();
  EXPECT_EQ(item.operation, Operation::kLookup);
  EXPECT_EQ(item.arguments.error(), Status::kBadXdr);
}

TEST(CompoundReader, AnUnknownNumberIsIllegalAndSoIsOneOfALaterMinorVersion) {
  Bytes bytes = compound_of(2, {SeekArguments{}});
  EXPECT_TRUE(CompoundReader::open(bytes)->next().arguments.has_value());
  store_big_endian(bytes.data() + 8, uint32_t{1});
  auto item = CompoundReader::open(bytes)->next();
  EXPECT_EQ(item.operation, Operation::kIllegal);
  EXPECT_EQ(item.arguments.error(), Status::kOpIllegal);

  for (const uint32_t number : {0u, 1u, 2u, 76u, 10044u, UINT32_MAX}) {
    Bytes unknown = compound_of(2, {GetFileHandleArguments{}});
    store_big_endian(unknown.data() + unknown.size() - 4, number);
    item = CompoundReader::open(unknown)->next();
    EXPECT_EQ(item.operation, Operation::kIllegal);
    EXPECT_EQ(item.arguments.error(), Status::kOpIllegal) << number;
  }
}

TEST(CompoundReader, AnAnnouncedCountCostsNothing) {
  Bytes bytes = compound_of(1, {});
  store_big_endian(bytes.data() + bytes.size() - 4, UINT32_MAX);
  auto reader = CompoundReader::open(bytes);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->next().arguments.error(), Status::kBadXdr);
  EXPECT_EQ(reader->left(), 0u);
}

TEST(CompoundReader, WriteDataIsAViewIntoTheRecord) {
  WriteArguments write;
  write.data = Data(Bytes(1000, std::byte{5}));
  const Bytes bytes = compound_of(1, {write});
  auto reader = CompoundReader::open(bytes);
  const auto item = reader->next();
  const ByteSpan data = std::get<WriteArguments>(*item.arguments).data.span();
  EXPECT_GE(data.data(), bytes.data());
  EXPECT_LE(data.data() + data.size(), bytes.data() + bytes.size());
}

TEST(ResultWriter, TheStatusIsThatOfTheLastOperation) {
  Bytes bytes;
  CompoundResultWriter writer(bytes, Tag("tag"));
  writer.add(PutRootFileHandleResponse());
  writer.add(LookupResponse(Status::kNoEnt));
  EXPECT_EQ(writer.size(), bytes.size());
  auto reader = CompoundResultReader::open(bytes);
  ASSERT_TRUE(reader.has_value());
  EXPECT_EQ(reader->status(), Status::kNoEnt);
  EXPECT_EQ(reader->tag(), "tag");
  EXPECT_TRUE(reader->result<PutRootFileHandleResponse>().has_value());
  EXPECT_EQ(reader->result<LookupResponse>().error(), Status::kNoEnt);
  EXPECT_EQ(reader->result<GetFileHandleResponse>().error(), Status::kNoEnt);
}

TEST(ResultWriter, AResultThatIsTooLongCanBeTakenBack) {
  Bytes bytes;
  CompoundResultWriter writer(bytes, Tag());
  writer.add(PutRootFileHandleResponse());
  const Bytes before = bytes;
  writer.add(ReadLinkResponse(ReadLinkResult{LinkText("somewhere")}));
  writer.drop_last();
  EXPECT_EQ(bytes, before);
  writer.add(ReadLinkResponse(Status::kRepTooBig));
  EXPECT_EQ(CompoundResultReader::open(bytes)->status(), Status::kRepTooBig);
}

TEST(ResultWriter, ReadDataGoesStraightIntoTheReply) {
  Bytes bytes;
  CompoundResultWriter writer(bytes, Tag());
  xdr::Encoder& encoder = writer.begin(Operation::kRead, Status::kOk);
  encoder.put_u32(1);
  std::ranges::fill(encoder.reserve_opaque(5), std::byte{3});
  auto reader = CompoundResultReader::open(bytes);
  const auto read = reader->result<ReadResponse>();
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(read->end_of_file);
  EXPECT_EQ(to_hex(read->data.span()), "0303030303");
}

TEST(ResultReader, AnotherOperationThanExpectedIsBadXdr) {
  Bytes bytes;
  CompoundResultWriter writer(bytes, Tag());
  writer.add(PutRootFileHandleResponse());
  auto reader = CompoundResultReader::open(bytes);
  EXPECT_EQ(reader->result<GetFileHandleResponse>().error(), Status::kBadXdr);
}

TEST(CompoundWriter, WritesWhatTheReaderReads) {
  SeededRandom random(5);
  for (int round = 0; round < 200; ++round) {
    CompoundArguments whole{{Tag("x"), 2}, {}};
    Bytes bytes;
    CompoundWriter writer(bytes, whole.header);
    for (int i = 0; i < 4; ++i) {
      randomize_operation(random, whole.operations.emplace_back());
      writer.add(whole.operations.back());
    }
    EXPECT_EQ(bytes, xdr::encode_to_bytes(whole));
    const auto decoded = xdr::decode_from<CompoundArguments>(bytes);
    ASSERT_TRUE(decoded.has_value());
    EXPECT_EQ(xdr::encode_to_bytes(*decoded), bytes);
  }
}

TEST(Dispatch, RunsTheHandlerOfTheOperationAndAnswersUnderItsNumber) {
  NothingSupported handler;
  int count = 0;
  const ResultOperation result = dispatch(handler, ArgumentOperation(SeekArguments{}), count);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(operation_of(result), Operation::kSeek);
  EXPECT_EQ(status_of(result), Status::kNotSupp);
}

TEST(StatusResult, HasTheOperationsOwnBodyForErrors) {
  const ResultOperation result = status_result(Operation::kSetAttributes, Status::kBadXdr);
  Bytes bytes;
  CompoundResultWriter writer(bytes, Tag());
  writer.add(result);
  EXPECT_TRUE(xdr::decode_from<CompoundResults>(bytes).has_value());
  EXPECT_EQ(operation_of(status_result(CallbackOperation::kCallbackSequence, Status::kBadSession)),
            CallbackOperation::kCallbackSequence);
}

TEST(OperationTable, NumbersAndNamesAreThoseOfTheRfc) {
  EXPECT_STREQ(to_string(Operation::kPutFileHandle), "PUTFH");
  EXPECT_STREQ(to_string(static_cast<Operation>(2)), "UNKNOWN");
  EXPECT_EQ(static_cast<uint32_t>(Operation::kSequence), 53u);
  EXPECT_EQ(static_cast<uint32_t>(Operation::kRemoveXattr), 75u);
  EXPECT_EQ(std::size(kOperationTable), 74u);  // 3 to 75, and ILLEGAL
  for (size_t i = 0; i + 1 < std::size(kOperationTable); ++i) EXPECT_EQ(kOperationTable[i].number, i + 3);
}

}  // namespace
}  // namespace pnfsrdma::nfs4

// SPDX-License-Identifier: Apache-2.0
#include "shared/nfs4/data_items.h"

#include <gtest/gtest.h>

#include "shared/nfs4/compound.h"

namespace pnfsrdma::nfs4 {
namespace {

Bytes compound_of(std::vector<ArgumentOperation> operations) {
  return xdr::encode_to_bytes(CompoundArguments{{Tag(), 2}, std::move(operations)});
}

WriteArguments write_of(ByteSpan data) {
  WriteArguments arguments;
  arguments.data = Data::view_of(data);
  return arguments;
}

ResultOperation read_result(ByteSpan data) {
  ReadResult result;
  result.data = Data::view_of(data);
  return ReadResponse(std::move(result));
}

// What a responder sends when each item goes by its own chunk.
Bytes reduce(ByteSpan whole, const std::vector<xdr::DataItem>& items) {
  Bytes reduced;
  size_t done = 0;
  for (const xdr::DataItem& item : items) {
    reduced.insert(reduced.end(), whole.begin() + static_cast<ptrdiff_t>(done),
                   whole.begin() + static_cast<ptrdiff_t>(item.position));
    done = item.position + item.length + xdr::padding(item.length);
  }
  reduced.insert(reduced.end(), whole.begin() + static_cast<ptrdiff_t>(done), whole.end());
  return reduced;
}

TEST(DataItems, TheDataOfAWriteIsWhereItsBytesAre) {
  const Bytes data(1001, std::byte{0x5a});
  const Bytes arguments =
      compound_of({PutRootFileHandleArguments{}, write_of(data), GetFileHandleArguments{}});
  const auto items = argument_data_items(arguments);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].length, 1001U);
  EXPECT_EQ(items[0].position % 4, 0U);
  EXPECT_EQ(arguments[items[0].position - 1], std::byte{1001 & 0xff});
  EXPECT_EQ(arguments[items[0].position], std::byte{0x5a});
  EXPECT_EQ(arguments[items[0].position + 1000], std::byte{0x5a});
  EXPECT_EQ(arguments[items[0].position + 1001], std::byte{0});
}

TEST(DataItems, ResultsAreRestoredFromWhatIsLeftOfThem) {
  const Bytes first(999, std::byte{1});
  const Bytes second(64, std::byte{2});
  ReadLinkResult link;
  link.link = LinkText("over/there");
  CompoundResults results;
  results.operations = {PutFileHandleResponse(Status::kOk),
                        read_result(first),
                        ReadLinkResponse(link),
                        read_result({}),
                        read_result(second),
                        CloseResponse(Status::kBadStateid)};
  results.status = Status::kBadStateid;
  const Bytes whole = xdr::encode_to_bytes(results);
  const auto items = result_data_items(whole);
  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[0].length, 999U);
  EXPECT_EQ(items[1].length, 10U);
  EXPECT_EQ(items[2].length, 0U);
  EXPECT_EQ(items[3].length, 64U);
  EXPECT_EQ(whole[items[1].position], std::byte{'o'});

  const uint32_t lengths[] = {999, 10, 0, 64};
  EXPECT_EQ(restored_data_items(reduce(whole, items), lengths),
            (std::vector<xdr::DataItem>{items[0], items[1], items[3]}));
  // Only some of them in chunks.
  const uint32_t only_last[] = {0, 0, 0, 64};
  EXPECT_EQ(restored_data_items(reduce(whole, {items[3]}), only_last),
            (std::vector<xdr::DataItem>{items[3]}));
}

TEST(DataItems, ALengthThatIsNotTheResultsIsRefused) {
  const Bytes data(100, std::byte{1});
  CompoundResults results;
  results.operations = {read_result(data)};
  const Bytes whole = xdr::encode_to_bytes(results);
  const Bytes reduced = reduce(whole, result_data_items(whole));
  const uint32_t wrong[] = {96};
  EXPECT_FALSE(restored_data_items(reduced, wrong));
}

TEST(DataItems, ResultsAreBoundedByTheirArguments) {
  const Bytes small =
      compound_of({SequenceArguments{}, PutFileHandleArguments{}, ReadArguments{{}, 0, 65536}});
  const xdr::StreamBound bound = result_bound(small);
  EXPECT_EQ(bound.data_bytes, (std::vector<uint32_t>{65536}));
  EXPECT_LT(bound.stream_bytes, 1000U);

  ReadDirectoryArguments directory;
  directory.max_count = 32768;
  const xdr::StreamBound listed = result_bound(compound_of({SequenceArguments{}, directory}));
  EXPECT_GT(listed.stream_bytes, 32768U);
  EXPECT_LT(listed.stream_bytes, 34000U);

  EXPECT_EQ(result_bound(compound_of({SequenceArguments{}, GetXattrArguments{}})).stream_bytes, SIZE_MAX);
  EXPECT_EQ(result_bound({}).stream_bytes, SIZE_MAX);
}

TEST(DataItems, EveryAttributeThatWeKnowFitsItsBound) {
  GetAttributesArguments wanted;
  wanted.requested =
      Bitmap::of(Attribute::kType, Attribute::kSize, Attribute::kOwner, Attribute::kTimeModify);
  GetAttributesResult result;
  result.attributes.type = FileType::kRegular;
  result.attributes.size = UINT64_MAX;
  result.attributes.owner = Text(std::string(200, 'o'));
  result.attributes.time_modify = Time{};
  CompoundResults results;
  results.operations = {GetAttributesResponse(std::move(result))};
  EXPECT_LE(xdr::encode_to_bytes(results).size(), result_bound(compound_of({wanted})).stream_bytes);
  wanted.requested.set(12);  // an ACL may be of any length
  EXPECT_EQ(result_bound(compound_of({wanted})).stream_bytes, SIZE_MAX);
}

}  // namespace
}  // namespace pnfsrdma::nfs4

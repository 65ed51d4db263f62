// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/record.h"

#include <gtest/gtest.h>

#include "shared/base/random.h"

namespace pnfsrdma::rpc {
namespace {

void append_fragment(Bytes& stream, ByteSpan bytes, bool last) {
  std::byte mark[kMarkSize];
  store_big_endian(mark, (last ? kLastFragment : 0u) | static_cast<uint32_t>(bytes.size()));
  stream.insert(stream.end(), std::begin(mark), std::end(mark));
  stream.insert(stream.end(), bytes.begin(), bytes.end());
}

TEST(RecordMark, OneFragmentIsTheLast) {
  std::byte mark[kMarkSize];
  write_record_mark(mark, 0x123);
  EXPECT_EQ(to_hex(mark), "80000123");
}

TEST(RecordReader, JoinsFragmentsHoweverTheyArrive) {
  SeededRandom random(3);
  Bytes stream;
  std::vector<Bytes> records;
  for (const size_t size : {0u, 1u, 5u, 100u, 70000u, 16384u, 3u, 300000u, 65536u}) {
    Bytes& record = records.emplace_back(size);
    random.fill(record);
    ByteSpan rest(record);
    while (rest.size() > 10 && random.next_u32() % 3 != 0) {
      const size_t part = random.next_u32() % rest.size();
      append_fragment(stream, rest.first(part), false);
      rest = rest.subspan(part);
    }
    append_fragment(stream, rest, true);
  }
  for (const size_t step : {7u, 1000u, 65536u, 1000000u}) {
    RecordReader reader;
    std::vector<Bytes> got;
    for (size_t at = 0; at < stream.size(); at += step) {
      ASSERT_TRUE(reader.feed(ByteSpan(stream).subspan(at, std::min(step, stream.size() - at))));
      while (auto record = reader.next()) got.push_back(std::move(*record));
    }
    EXPECT_TRUE(got == records) << "in steps of " << step;
    EXPECT_FALSE(reader.mid_record());
  }
}

TEST(RecordReader, RefusesARecordThatIsTooLongBeforeItComes) {
  RecordReader reader(1000);
  Bytes stream;
  append_fragment(stream, Bytes(600), false);
  EXPECT_TRUE(reader.feed(stream));
  std::byte mark[kMarkSize];
  store_big_endian(mark, uint32_t{401});
  EXPECT_FALSE(reader.feed(mark));

  RecordReader other(1000);
  store_big_endian(mark, uint32_t{0x7fffffff});
  EXPECT_FALSE(other.feed(mark));
}

TEST(RecordReader, AcceptsARecordOfExactlyTheLimit) {
  RecordReader reader(1000);
  Bytes stream;
  append_fragment(stream, Bytes(600), false);
  append_fragment(stream, Bytes(400), true);
  EXPECT_TRUE(reader.feed(stream));
  EXPECT_EQ(reader.next()->size(), 1000u);
}

TEST(RecordReader, EmptyFragmentsAreHarmless) {
  RecordReader reader;
  Bytes stream;
  for (int i = 0; i < 1000; ++i) append_fragment(stream, {}, false);
  append_fragment(stream, Bytes(4), true);
  EXPECT_TRUE(reader.feed(stream));
  EXPECT_EQ(reader.next()->size(), 4u);
  EXPECT_FALSE(reader.has_record());
}

TEST(RecordReader, LargeFragmentsAreReadStraightIntoTheirRecord) {
  RecordReader reader;
  std::byte mark[kMarkSize];
  write_record_mark(mark, 100000);
  EXPECT_TRUE(reader.feed(mark));
  const MutableByteSpan first = reader.space();
  EXPECT_EQ(first.size(), 100000u);
  EXPECT_TRUE(reader.filled(60000));
  EXPECT_EQ(reader.space().size(), 40000u);
  EXPECT_TRUE(reader.filled(40000));
  EXPECT_EQ(reader.next()->size(), 100000u);
}

}  // namespace
}  // namespace pnfsrdma::rpc

// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/record.h"

#include <gtest/gtest.h>

#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"

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
      const size_t part = 1 + random.next_u32() % (rest.size() - 1);
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

TEST(RecordReader, RefusesAnEmptyFragmentThatIsNotTheLast) {
  RecordReader reader;
  Bytes stream;
  append_fragment(stream, {}, false);
  EXPECT_FALSE(reader.feed(stream));

  RecordReader other;
  stream.clear();
  append_fragment(stream, Bytes(10), false);
  append_fragment(stream, {}, true);
  EXPECT_TRUE(other.feed(stream));
  EXPECT_EQ(other.next()->size(), 10u);
}

// What is held of a record that does not go on.
size_t held_for(size_t announced, size_t sent) {
  RecordReader reader;
  Bytes stream;
  append_fragment(stream, Bytes(announced), true);
  stream.resize(kMarkSize + sent);
  EXPECT_TRUE(reader.feed(stream));
  reader.space();  // as a read that finds nothing makes it
  EXPECT_TRUE(reader.filled(0));
  return reader.held_bytes();
}

TEST(RecordReader, HalfARecordCostsWhatHasComeNotWhatWasAnnounced) {
  EXPECT_LE(held_for(1 << 20, 100), 20'000u);
  EXPECT_LE(held_for(1 << 20, 40'000), 160'000u);
  EXPECT_LE(held_for(1 << 20, 600'000), 1'300'000u);
}

TEST(RecordReader, ASilentOneHoldsNothingAndWholeRecordsCountUntilTheyAreTaken) {
  RecordReader reader;
  EXPECT_EQ(reader.held_bytes(), 0u);
  Bytes stream;
  append_fragment(stream, Bytes(100), true);
  append_fragment(stream, Bytes(100), true);
  EXPECT_TRUE(reader.feed(stream));
  EXPECT_GE(reader.held_bytes(), 200u);
  reader.next();
  EXPECT_GE(reader.held_bytes(), 100u);
  reader.next();
  EXPECT_EQ(reader.held_bytes(), 0u);
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

TEST(RecordReader, LargeFragmentsAreReadStraightIntoTheirRecordInGrowingSteps) {
  RecordReader reader;
  std::byte mark[kMarkSize];
  write_record_mark(mark, 100000);
  EXPECT_TRUE(reader.feed(mark));
  size_t come = 0;
  size_t reads = 0;
  while (come < 100000) {
    const size_t room = reader.space().size();
    EXPECT_GE(room, std::min<size_t>(16384, 100000 - come));
    EXPECT_TRUE(reader.filled(room));
    come += room;
    ++reads;
  }
  EXPECT_LE(reads, 5u);
  EXPECT_EQ(reader.next()->size(), 100000u);
}

TEST(RecordReader, ALongRecordGrowsByNoMoreThanIsReadAtATime) {
  RecordReader reader;
  Bytes stream;
  append_fragment(stream, Bytes(600'000), true);
  EXPECT_TRUE(reader.feed(ByteSpan(stream).first(400'000)));
  const size_t before = reader.held_bytes();
  EXPECT_EQ(reader.space(1000).size(), 1000u);
  EXPECT_TRUE(reader.filled(1000));
  EXPECT_LE(reader.held_bytes(), before + 1000);
  EXPECT_TRUE(reader.feed(ByteSpan(stream).subspan(401'000)));
  EXPECT_EQ(reader.next()->size(), 600'000u);
}

}  // namespace
}  // namespace pnfsrdma::rpc

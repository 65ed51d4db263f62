// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "shared/base/crc32c.h"
#include "shared/initiator/cancellation.h"
#include "tests/unit/initiator/file/data_path_fixture.h"

// What bricks read back behind a flush: in few messages, from what is really there.
namespace pnfsrdma::initiator {
namespace {

class ReadBackTest : public DataPathTest {
 protected:
  static constexpr uint64_t kSize = uint64_t{6} << 20;
  void SetUp() override {
    make_file(kSize);
    write(8192, 4096, 1);
    ASSERT_TRUE(file->fsync(cursor));
    (void)sums({{0, kSize}});
    begin();
  }
  void begin() {
    events.take();
    calls_before_ = channel.calls;
    round_trips_before_ = path->statistics().rdma_round_trips.value();
  }
  Result<ReadBackSums> sums(const std::vector<FileRange>& ranges) {
    return file->flush_and_verify(ranges, cursor);
  }
  int error_of(const std::vector<FileRange>& ranges) {
    const auto read = sums(ranges);
    return read ? 0 : read.error().number();
  }
  uint32_t expected(const FileRange& range) { return crc32c({brick.memory() + range.offset, range.length}); }
  int mds_calls() const { return channel.calls - calls_before_; }
  uint64_t round_trips() const { return path->statistics().rdma_round_trips.value() - round_trips_before_; }

 private:
  int calls_before_ = 0;
  uint64_t round_trips_before_ = 0;
};

TEST_F(ReadBackTest, ManyRangesAreOneRoundTrip) {
  std::vector<FileRange> ranges;
  for (uint64_t i = 0; i < 40; ++i) ranges.push_back({i * 100'003, 64 + i});
  ranges.push_back({(1 << 20) - 100, 200});  // across two segments
  ranges.push_back({77, 0});
  const auto read = sums(ranges);
  ASSERT_TRUE(read) << read.error().to_string();
  for (size_t i = 0; i < ranges.size(); ++i) EXPECT_EQ(read->checksums.at(i), expected(ranges[i])) << i;
  EXPECT_EQ(round_trips(), 1u);
  EXPECT_EQ(mds_calls(), 0);
  EXPECT_FALSE(read->medium);
}

TEST_F(ReadBackTest, LongOnesAreTakenInPiecesAndJoined) {
  const auto read = sums({{5, kSize - 5}, {0, 1 << 20}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->checksums, (std::vector{expected({5, kSize - 5}), expected({0, 1 << 20})}));
  EXPECT_EQ(round_trips(), 2u);
}

TEST_F(ReadBackTest, WhatWasWrittenIsFlushedBefore) {
  write(4096, 4096, 9);
  begin();
  ASSERT_TRUE(sums({{4096, 4096}}));
  EXPECT_EQ(events.take(), (std::vector<std::string>{"persist 4096+4096", "verify 4096+4096"}));
}

TEST_F(ReadBackTest, AFlippedBitIsFound) {
  const uint32_t before = sums({{0, 100'000}})->checksums.at(0);
  brick.memory()[77'777] ^= std::byte{1};
  EXPECT_NE(sums({{0, 100'000}})->checksums.at(0), before);
}

TEST_F(ReadBackTest, HolesAreZeros) {
  build(options_now, kSize);
  channel.holes.insert(2 << 20);
  std::memset(brick.memory() + (2 << 20), 0, 1 << 20);
  const auto read = sums({{(2 << 20) - 10, (1 << 20) + 20}, {(2 << 20) + 5, 10'000}});
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->checksums,
            (std::vector{expected({(2 << 20) - 10, (1 << 20) + 20}), expected({(2 << 20) + 5, 10'000})}));
}

TEST_F(ReadBackTest, WhatIsNotToBeHadIsSaid) {
  EXPECT_EQ(error_of({{0, 8}, {kSize - 4, 8}}), EINVAL);
  EXPECT_EQ(error_of({{UINT64_MAX, 2}}), EINVAL);
  brick.understands = brick::kUnderstandsChangeWord;
  brick.cut_connection();
  EXPECT_EQ(error_of({{0, 8}}), ENOTSUP);
}

// A process that is killed after it was asked so many times whether somebody has killed it.
class KilledAfter final : public Cancellation {
 public:
  explicit KilledAfter(int questions) : left_(questions) {}
  bool requested() override { return left_ == 0 || --left_ == 0; }

 private:
  int left_;
};

// A file of holes alone is as long as its owner likes, and asks no brick.
TEST_F(ReadBackTest, NobodyReadsForOneWhoWasKilled) {
  build(options_now, kSize);
  for (uint64_t at = 0; at < kSize; at += 1 << 20) channel.holes.insert(at);
  for (const int questions : {1, 2}) {
    KilledAfter killed(questions);
    const CancellationScope scope(killed);
    EXPECT_EQ(error_of({{0, kSize}}), EINTR) << questions;
  }
}

TEST_F(ReadBackTest, LostConnectionsAndGrantsCostATryOnly) {
  brick.cut_connection();
  EXPECT_EQ(sums({{0, 4096}})->checksums.at(0), expected({0, 4096}));
  brick.withdraw(0, FakeBrick::kBytes);
  EXPECT_EQ(sums({{0, 4096}})->checksums.at(0), expected({0, 4096}));
}

}  // namespace
}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/follower.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "server/mds/meta/format_version.h"
#include "tests/doubles/metadata/memory_store.h"

namespace pnfsrdma::mds {
namespace {

class Following : public ::testing::Test {
 protected:
  Following() : store_(loop_), follower_(loop_, store_, keys_, {"id", {}}, [] { return false; }) {}
  std::vector<KeyRow> value(LogPosition position, const std::vector<LogRecord>& records) {
    ValueBuilder builder;
    for (const LogRecord& one : records) EXPECT_TRUE(builder.add(encode_record(one)));
    return chained(position, builder.take());
  }
  std::vector<KeyRow> chained(LogPosition position, std::string bytes) {
    chain_value(bytes, hashes_[position - 1]);
    hashes_[position] = hash_of(bytes);
    return {{keys_.value(position), bytes, 1}};
  }
  static LogRecord put(std::string_view key, std::string_view value) {
    LogRecord record;
    record.batch.put(key, value);
    return record;
  }
  SystemClock clock_;
  EventLoop loop_{clock_};
  const LogKeys keys_{"/test"};
  MemoryStore store_;
  Follower follower_;
  std::map<LogPosition, LogHash> hashes_;
};

TEST_F(Following, TakesEachValueOnceWithItsPosition) {
  ASSERT_TRUE(follower_.take(value(1, {put("a", "1"), put("b", "1"), put("a", "2")})));
  EXPECT_EQ(store_.get("a").value(), "2");
  EXPECT_EQ(read_position(store_).value(), (StorePosition{"id", {1, hashes_[1]}}));
  EXPECT_EQ(follower_.take(value(3, {put("a", "3")})).error().number(), ENODATA);
  EXPECT_EQ(store_.get("a").value(), "2");
}

TEST_F(Following, AValueOfAnotherHistoryIsRefused) {
  ASSERT_TRUE(follower_.take(value(1, {put("a", "1")})));
  hashes_[1] = hash_of("another one");
  EXPECT_EQ(follower_.take(value(2, {put("a", "2")})).error().number(), ENODATA);
  EXPECT_EQ(store_.get("a").value(), "1");
  EXPECT_EQ(follower_.next(), 2u);
}

TEST_F(Following, WhatTheStoreDidNotTakeIsTakenLater) {
  bool stops = true;
  Follower follower(loop_, store_, keys_, {"id", {}}, [&] { return stops; });
  const std::vector<std::string> parts =
      ValueBuilder::parts_of(encode_record(put("a", std::string(kLogValueBytesMax, 'x'))));
  ASSERT_EQ(parts.size(), 2u);
  ASSERT_TRUE(follower.take(chained(1, parts[0])));
  store_.stall(1);
  const auto last = chained(2, parts[1]);
  EXPECT_EQ(follower.take(last).error().number(), ECANCELED);
  ASSERT_TRUE(follower.take(last));
  EXPECT_TRUE(store_.get("a").value());
}

TEST_F(Following, WhatOnlyANewerProgramKnowsIsRefused) {
  LogRecord newer = put("x", "1");
  raise_format_version(newer.batch, kFormatVersion + 1);
  EXPECT_EQ(follower_.take(value(1, {newer})).error().number(), ENOTSUP);
  EXPECT_EQ(store_.get("x").value(), std::nullopt);
}

TEST_F(Following, ACheckpointHasWhatCameBefore) {
  ASSERT_TRUE(follower_.take(value(1, {put("a", "1"), {LogRecordKind::kCheckpoint, {}, 4}, put("a", "2")})));
  EXPECT_EQ(store_.checkpoints().at(4).find("a")->second, "1");
  EXPECT_EQ(store_.get("a").value(), "2");
  // The value once more, as after a crash in the middle of it.
  Follower again(loop_, store_, keys_, {"id", {}}, [] { return false; });
  ASSERT_TRUE(again.take(value(1, {put("a", "1"), {LogRecordKind::kCheckpoint, {}, 4}, put("a", "2")})));
  EXPECT_EQ(store_.checkpoints().at(4).find("a")->second, "1");
  ASSERT_TRUE(again.take(value(2, {{LogRecordKind::kDropCheckpoint, {}, 4}})));
  EXPECT_TRUE(store_.checkpoints().empty());
}

TEST_F(Following, PartsCountWhenTheLastIsThere) {
  const std::vector<std::string> parts =
      ValueBuilder::parts_of(encode_record(put("a", std::string(2 * kLogValueBytesMax, 'x'))));
  ASSERT_EQ(parts.size(), 3u);
  ASSERT_TRUE(follower_.take(chained(1, parts[0])));
  ASSERT_TRUE(follower_.take(chained(2, parts[1])));
  EXPECT_EQ(follower_.position().applied.position, 0u);
  EXPECT_EQ(follower_.next(), 3u);
  ASSERT_TRUE(follower_.take(chained(3, parts[2])));
  EXPECT_EQ(follower_.position().applied.position, 3u);
  EXPECT_TRUE(store_.get("a").value());
}

}  // namespace
}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_record.h"

#include <gtest/gtest.h>

#include "server/mds/log/log_keys.h"

namespace pnfsrdma::mds {
namespace {

std::string text_of(const Batch& batch) {
  std::string text;
  batch.for_each(
      [&](std::string_view key, std::string_view value) {
        text += "+" + std::string(key) + "=" + std::string(value) + ";";
      },
      [&](std::string_view key) { text += "-" + std::string(key) + ";"; });
  return text;
}

LogRecord a_batch(std::string_view key, std::string_view value) {
  LogRecord record;
  record.batch.put(key, value);
  return record;
}

TEST(LogRecord, ComesBackAsItWas) {
  LogRecord record;
  record.batch.put("a", "1");
  record.batch.erase("b");
  record.batch.put("", std::string("\0\xff", 2));
  record.batch.mark_makes_room();
  const auto back = decode_record(encode_record(record));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, LogRecordKind::kBatch);
  EXPECT_TRUE(back->batch.makes_room());
  EXPECT_EQ(text_of(back->batch), text_of(record.batch));
  EXPECT_EQ(encoded_size(record.batch), encode_record(record).size() - 2);
  for (const LogRecordKind kind : {LogRecordKind::kCheckpoint, LogRecordKind::kDropCheckpoint}) {
    const auto other = decode_record(encode_record({kind, {}, 77}));
    ASSERT_TRUE(other);
    EXPECT_EQ(other->kind, kind);
    EXPECT_EQ(other->checkpoint, 77u);
  }
}

TEST(LogRecord, ShortOrUnknownOnesAreRefused) {
  LogRecord record;
  record.batch.put("key", "value");
  record.batch.erase("other");
  const std::string bytes = encode_record(record);
  const size_t whole_operation = bytes.size() - 1 - 4 - 5;  // without the erasure it is sound again
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(decode_record(bytes.substr(0, size)).has_value(), size == 2 || size == whole_operation) << size;
  EXPECT_FALSE(decode_record("\x09rest"));
  std::string wrong = encode_record({LogRecordKind::kCheckpoint, {}, 1});
  EXPECT_FALSE(decode_record(wrong + "x"));
}

TEST(LogValue, HasManyRecords) {
  ValueBuilder builder;
  EXPECT_TRUE(builder.empty());
  ASSERT_TRUE(builder.add(encode_record(a_batch("a", "1"))));
  ASSERT_TRUE(builder.add(encode_record({LogRecordKind::kCheckpoint, {}, 5})));
  ValueReader reader;
  const auto records = reader.take(builder.take());
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ(text_of((*records)[0].batch), "+a=1;");
  EXPECT_EQ((*records)[1].checkpoint, 5u);
  EXPECT_TRUE(builder.empty());
}

TEST(LogValue, ALargeRecordIsInParts) {
  ValueBuilder builder;
  const std::string large = encode_record(a_batch("k", std::string(5 * kLogValueBytesMax / 2, 'x')));
  EXPECT_FALSE(builder.add(large));
  EXPECT_TRUE(ValueBuilder::parts_of("small").empty());
  const std::vector<std::string> parts = ValueBuilder::parts_of(large);
  ASSERT_EQ(parts.size(), 3u);
  ValueReader reader;
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_LE(parts[i].size(), kLogValueBytesMax);
    const auto records = reader.take(parts[i]);
    ASSERT_TRUE(records);
    EXPECT_EQ(records->size(), i == 2 ? 1u : 0u);
    EXPECT_EQ(reader.in_the_middle(), i != 2);
    if (i == 2) {
      EXPECT_EQ(encode_record(records->front()), large);
    }
  }
}

TEST(LogValue, TheLargestThatFitsIsInNoParts) {
  ValueBuilder builder;
  const std::string fits(kLogValueBytesMax - 22, 'x');
  EXPECT_TRUE(ValueBuilder::parts_of(fits).empty());
  EXPECT_TRUE(builder.add(fits));
  EXPECT_FALSE(builder.add(""));
  EXPECT_EQ(builder.take().size(), kLogValueBytesMax);
}

TEST(LogValue, NoSizeIsLostBetweenWholeAndParts) {
  const size_t around = encode_record(a_batch("k", "")).size();
  for (size_t size = kLogValueBytesMax - 30; size < kLogValueBytesMax + 4; ++size) {
    const std::string record = encode_record(a_batch("k", std::string(size - around, 'x')));
    ASSERT_EQ(record.size(), size);
    ValueBuilder builder;
    std::vector<std::string> values = ValueBuilder::parts_of(record);
    ASSERT_EQ(builder.add(record), values.empty()) << size;
    if (values.empty()) values.push_back(builder.take());
    ValueReader reader;
    size_t read = 0;
    for (const std::string& value : values) read += reader.take(value).value().size();
    EXPECT_EQ(read, 1u) << size;
    EXPECT_FALSE(reader.in_the_middle()) << size;
  }
}

TEST(LogValue, PartsWithoutTheLastAreVoid) {
  const std::vector<std::string> parts =
      ValueBuilder::parts_of(encode_record(a_batch("k", std::string(2 * kLogValueBytesMax, 'x'))));
  ValueReader reader;
  ASSERT_TRUE(reader.take(parts[0]));
  ASSERT_TRUE(reader.take(parts[1]));
  ValueBuilder builder;
  ASSERT_TRUE(builder.add(encode_record(a_batch("a", "1"))));
  const auto records = reader.take(builder.take());
  ASSERT_TRUE(records);
  EXPECT_EQ(records->size(), 1u);
  EXPECT_FALSE(reader.in_the_middle());
  EXPECT_FALSE(reader.take(parts[2]));  // the last part of nothing
}

TEST(LogValue, OfAnotherFormatIsRefusedAndSaysSo) {
  ValueReader reader;
  for (const char* value : {"\x01W", "\x03W"}) {
    const auto refused = reader.take(value);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().number(), ENOTSUP);
    EXPECT_NE(refused.error().what().find("knows format 2"), std::string::npos);
  }
  EXPECT_EQ(reader.take("\x02W").error().number(), EUCLEAN);
}

TEST(LogValue, NamesTheOneBefore) {
  ValueBuilder builder;
  ASSERT_TRUE(builder.add(encode_record(a_batch("a", "1"))));
  std::string value = builder.take();
  EXPECT_EQ(hash_before(value), LogHash{});
  const LogHash first = hash_of(value);
  chain_value(value, first);
  EXPECT_EQ(hash_before(value), first);
  EXPECT_NE(hash_of(value), first);
  EXPECT_EQ(ValueReader().take(value)->size(), 1u);
  EXPECT_EQ(hash_before("short"), std::nullopt);
}

TEST(PositionRow, ComesBackAsItWas) {
  EXPECT_EQ(PositionRow::parse(PositionRow{7, "some place"}.text()).position, 7u);
  EXPECT_EQ(PositionRow::parse(PositionRow{7, "some place"}.text()).rest, "some place");
  EXPECT_EQ(PositionRow::parse("12").position, 12u);
  EXPECT_EQ(PositionRow::parse("").position, 0u);
}

TEST(LogKeys, ValuesAreInTheOrderOfTheirNumbers) {
  const LogKeys keys{"/p"};
  EXPECT_LT(keys.value(9), keys.value(10));
  EXPECT_LT(keys.value(0xff), keys.value(0x100));
  EXPECT_LT(keys.value(UINT64_MAX), keys.values_end());
  EXPECT_EQ(keys.position_of(keys.value(300)), 300u);
  EXPECT_FALSE(keys.position_of(keys.leader()));
  EXPECT_FALSE(keys.position_of("/other/log/1"));
  EXPECT_LT(keys.member("~"), keys.members_end());
}

}  // namespace
}  // namespace pnfsrdma::mds

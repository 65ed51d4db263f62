// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_writer.h"

#include <gtest/gtest.h>

#include <atomic>

#include "server/mds/log/log_record.h"
#include "tests/doubles/metadata/memory_key_server.h"

namespace pnfsrdma::mds {
namespace {

using Fault = MemoryKeys::Fault;

class Writer : public ::testing::Test {
 protected:
  Writer() {
    server_.put(keys_.leader(), "me");
    lead_ = server_.rows()[keys_.leader()].revision;
  }
  std::unique_ptr<LogWriter> open(LogPoint end = {}, Milliseconds patience = Milliseconds(15'000)) {
    auto writer = std::make_unique<LogWriter>(
        loop_, server_.connector()(),
        LogWriter::Options{.keys = keys_,
                           .lead = lead_,
                           .end = end,
                           .leads = [this] { return leads_.load(); },
                           .wrote =
                               [this](LogPosition, size_t bytes, LatencyHistogram::Duration took) {
                                 bytes_ += bytes;
                                 took_ = took;
                               },
                           .patience = patience});
    writer->start({.logged = [this](const Logged& logged) { logged_ = logged; },
                   .lost = [this](const Error& error) { lost_ = error; }});
    return writer;
  }
  static std::string record(const std::string& key, size_t size = 1) {
    LogRecord made;
    made.batch.put(key, std::string(size, 'v'));
    return encode_record(made);
  }
  // The keys of all batches in the log, in its order; "?" where a number is missing.
  std::string content() {
    std::string all;
    ValueReader reader;
    LogPosition next = 1;
    for (const auto& [key, row] : server_.rows()) {
      const auto position = keys_.position_of(key);
      if (!position) continue;
      if (*position != next++) all += "?";
      const auto records = reader.take(row.value);
      for (const LogRecord& one : *records)
        one.batch.for_each([&](std::string_view k, std::string_view) { all += k; }, [](std::string_view) {});
    }
    return all;
  }
  template <typename Condition>
  void run_until(Condition condition) {
    for (int i = 0; i < 500 && !condition(); ++i) loop_.run_once(Milliseconds(10));
    ASSERT_TRUE(condition());
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  MemoryKeys server_;
  const LogKeys keys_{"/test"};
  KeyRevision lead_ = 0;
  std::atomic<bool> leads_ = true;
  std::atomic<size_t> bytes_ = 0;
  std::atomic<LatencyHistogram::Duration> took_{};
  Logged logged_;
  std::optional<Error> lost_;
};

TEST_F(Writer, WritesInOrderAndSaysSo) {
  const auto writer = open();
  for (const char* key : {"a", "b", "c", "d"}) writer->append(record(key));
  run_until([&] { return logged_.records == 4; });
  EXPECT_EQ(content(), "abcd");
  EXPECT_TRUE(server_.rows().contains(keys_.value(logged_.end.position)));
  EXPECT_FALSE(server_.rows().contains(keys_.value(logged_.end.position + 1)));
  EXPECT_GT(bytes_, 0u);
}

TEST_F(Writer, GoesOnBehindWhatIsThere) {
  const auto writer = open({41, hash_of("the value there")});
  writer->append(record("a"));
  const auto logged = writer->wait();
  ASSERT_TRUE(logged);
  EXPECT_EQ(logged->end.position, 42u);
  EXPECT_EQ(hash_before(server_.value(keys_.value(42))), hash_of("the value there"));
  EXPECT_EQ(logged->end.hash, hash_of(server_.value(keys_.value(42))));
}

TEST_F(Writer, AnUnknownOutcomeIsAskedForAndNothingIsWrittenTwice) {
  server_.plan({Fault::kLostAnswer, Fault::kLostRequest, Fault::kLostAnswer, Fault::kLostAnswer, Fault::kNone,
                Fault::kLostRequest, Fault::kLostRequest});
  const auto writer = open();
  for (int i = 0; i < 6; ++i) {
    writer->append(record(std::string(1, static_cast<char>('a' + i))));
    ASSERT_TRUE(writer->wait());
  }
  EXPECT_EQ(content(), "abcdef");
}

TEST_F(Writer, ALargeRecordIsInSeveralValues) {
  const auto writer = open();
  writer->append(record("a"));
  writer->append(record("b", 3 * kLogValueBytesMax));
  writer->append(record("c"));
  const auto logged = writer->wait();
  ASSERT_TRUE(logged);
  EXPECT_EQ(logged->records, 3u);
  EXPECT_GE(logged->end.position, 6u);
  EXPECT_EQ(content(), "abc");
}

TEST_F(Writer, WritesNothingBehindTheLeadOfSomebodyElse) {
  const auto writer = open();
  writer->append(record("a"));
  ASSERT_TRUE(writer->wait());
  server_.put(keys_.leader(), "other");
  writer->append(record("b"));
  const auto refused = writer->wait();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), ESTALE);
  run_until([&] { return lost_.has_value(); });
  EXPECT_EQ(content(), "a");
}

// The first try was done, its answer lost, and another server has taken the lead: it has the value.
TEST_F(Writer, DoesNotSayWhatItCannotKnow) {
  const auto writer = open();
  server_.plan({Fault::kLostAnswer});
  writer->append(record("a"));
  run_until([&] { return server_.rows().contains(keys_.value(1)); });
  server_.put(keys_.leader(), "other");
  run_until([&] { return lost_.has_value() || logged_.records == 1; });
  EXPECT_NE(lost_.has_value(), logged_.records == 1);
  EXPECT_EQ(content(), "a");
}

TEST_F(Writer, WaitsWhileTheServerIsAwayAndEndsWithTheLead) {
  server_.cut(true);
  const auto writer = open();
  writer->append(record("a"));
  for (int i = 0; i < 10; ++i) loop_.run_once(Milliseconds(10));
  EXPECT_FALSE(lost_);
  leads_ = false;
  run_until([&] { return lost_.has_value(); });
  server_.cut(false);
  EXPECT_EQ(logged_.records, 0u);
  EXPECT_EQ(content(), "");
}

TEST_F(Writer, AValueTakesFromItsFirstTryOn) {
  server_.plan(std::vector(4, Fault::kLostRequest));
  const auto writer = open();
  writer->append(record("a"));
  ASSERT_TRUE(writer->wait());
  EXPECT_GE(took_.load(), Milliseconds(80));
}

TEST_F(Writer, WhatIsNeverTakenEndsTheLog) {
  const auto writer = open();
  server_.plan({Fault::kRefused});
  writer->append(record("a"));
  run_until([&] { return lost_.has_value(); });
  EXPECT_EQ(lost_->number(), EPROTO);
}

// Smaller ones, the renewals of the lead, get through.
TEST_F(Writer, AValueThatIsNotTakenForLongEndsTheLog) {
  const auto writer = open({}, Milliseconds(100));
  server_.plan(std::vector(1000, Fault::kLostRequest));
  writer->append(record("a"));
  run_until([&] { return lost_.has_value(); });
  EXPECT_EQ(lost_->number(), ETIMEDOUT);
  EXPECT_NE(lost_->what().find("lost"), std::string::npos);  // what the server said
}

TEST_F(Writer, EachValueNamesTheOneBefore) {
  server_.plan({Fault::kLostAnswer, Fault::kLostRequest, Fault::kNone, Fault::kDoneLater});
  LogPoint end;
  for (int i = 0; i < 2; ++i) {  // another leader goes on with it
    const auto writer = open(end);
    for (const size_t size : {size_t{1}, 3 * kLogValueBytesMax, size_t{1}}) {
      writer->append(record("a", size));
      end = writer->wait().value().end;
    }
    server_.deliver_late();
  }
  EXPECT_GE(end.position, 12u);
  LogHash before{};
  for (LogPosition position = 1; position <= end.position; ++position) {
    const std::string value = server_.value(keys_.value(position));
    EXPECT_EQ(hash_before(value), before) << position;
    before = hash_of(value);
  }
  EXPECT_EQ(end.hash, before);
}

TEST_F(Writer, WhatArrivesLateIsNotWrittenAgainstTheLead) {
  const auto writer = open();
  server_.plan(std::vector(1000, Fault::kDoneLater));
  writer->append(record("a"));
  run_until([&] { return server_.late() > 2; });
  server_.put(keys_.leader(), "other");
  server_.plan({});
  run_until([&] { return lost_.has_value(); });
  EXPECT_EQ(lost_->number(), ESTALE);
  EXPECT_EQ(server_.deliver_late(), 0u);
  EXPECT_EQ(content(), "");
}

TEST_F(Writer, NothingGoesBehindACheckpointInItsValue) {
  const auto writer = open();
  server_.cut(true);  // all of them are there when the first value is made
  writer->append(record("x"));
  sleep_for(Milliseconds(50));
  for (const char* key : {"a", "b"}) writer->append(record(key));
  writer->append(encode_record({LogRecordKind::kCheckpoint, {}, 7}));
  for (const char* key : {"c", "d"}) writer->append(record(key));
  sleep_for(Milliseconds(50));
  server_.cut(false);
  ASSERT_TRUE(writer->wait());
  EXPECT_EQ(content(), "xabcd");
  for (const auto& [key, row] : server_.rows()) {
    if (!keys_.position_of(key)) continue;
    const auto records = ValueReader().take(row.value).value();
    for (size_t i = 0; i + 1 < records.size(); ++i) EXPECT_EQ(records[i].kind, LogRecordKind::kBatch);
  }
}

TEST_F(Writer, SomebodyElsesValueIsNotTakenForItsOwn) {
  server_.put(keys_.value(1), "\x01W");
  const auto writer = open();
  writer->append(record("a"));
  const auto refused = writer->wait();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().number(), EUCLEAN);
}

}  // namespace
}  // namespace pnfsrdma::mds

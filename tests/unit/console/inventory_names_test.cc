// SPDX-License-Identifier: Apache-2.0
#include "server/console/inventory_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console::testing {
namespace {

using Words = std::set<std::string>;

// The words of the enumerators 0 to `last`.
template <typename Enum>
Words words_up_to(Enum last) {
  Words words;
  for (int value = 0; value <= static_cast<int>(last); ++value)
    words.insert(to_string(static_cast<Enum>(value)));
  return words;
}

TEST(InventoryNames, AreThoseOfTheDocument) {
  const ApiWorld world;
  const auto documented = [&](const char* schema, const char* name) {
    const Json& property = world.document.json()["components"]["schemas"].at(schema)["properties"].at(name);
    return (property.contains("items") ? property["items"] : property).at("enum").get<Words>();
  };
  EXPECT_EQ(words_up_to(SessionTransport::kRdmaIwarp), documented("ClientSession", "transport"));
  EXPECT_EQ(words_up_to(CallbackState::kUp), documented("ClientSession", "callbacks"));
  EXPECT_EQ(words_up_to(LayoutState::kRevoking), documented("Layout", "state"));
  EXPECT_EQ(words_up_to(BrickState::kForeign), documented("Brick", "state"));
  Words durabilities = words_up_to(Durability::kPower);
  durabilities.insert(to_string(std::optional<Durability>()));
  EXPECT_EQ(durabilities, documented("Brick", "durability"));
  EXPECT_EQ(words_up_to(FlushMethod::kLayoutCommit), documented("Brick", "flush_methods"));
  EXPECT_EQ(words_up_to(BlockState::kGrantedWrite), documented("BlockRun", "state"));
  EXPECT_EQ(words_up_to(FileType::kFifo), documented("File", "type"));
  EXPECT_EQ(words_up_to(SnapshotState::kDeleting), documented("Snapshot", "state"));
  EXPECT_EQ(words_up_to(SnapshotClass::kMonthly), documented("SnapshotDue", "schedule"));
  EXPECT_EQ(words_up_to(QuotaKind::kTree), documented("Quota", "kind"));
  EXPECT_EQ(words_up_to(QuotaStanding::kFull), documented("Quota", "space_state"));
  EXPECT_EQ(words_up_to(QuotaStanding::kFull), documented("Quota", "inodes_state"));
  EXPECT_EQ(words_up_to(QuotaSource::kDefault), documented("Quota", "limits_from"));
  EXPECT_EQ(words_up_to(QuotaState::kOn), documented("QuotaSettings", "state"));
  EXPECT_EQ(words_up_to(HealthStatus::kFailed), documented("HealthCheck", "status"));
  EXPECT_EQ(words_up_to(JobState::kCancelled), documented("Job", "state"));
  EXPECT_EQ(words_up_to(SettingSource::kStore), documented("Setting", "source"));
  const Words job_kinds = documented("Job", "kind");
  for (const std::string& kind : words_up_to(JobKind::kRecount))
    EXPECT_TRUE(job_kinds.contains(kind)) << kind;
}

TEST(InventoryNames, AreReadBack) {
  EXPECT_EQ(session_transport_of("rdma-iwarp"), SessionTransport::kRdmaIwarp);
  EXPECT_EQ(session_transport_of("none"), SessionTransport::kNone);
  EXPECT_EQ(data_transport_of("verbs"), DataTransport::kVerbs);
  EXPECT_EQ(data_transport_of(""), DataTransport::kNone);
  EXPECT_EQ(data_transport_of("of another version"), DataTransport::kOther);
  EXPECT_EQ(quota_kind_of("tree"), QuotaKind::kTree);
  EXPECT_FALSE(quota_kind_of(""));
  EXPECT_EQ(pool_kind_of("fsdax"), PoolKind::kFilesystemDax);
  EXPECT_EQ(pool_kind_of("of another version"), PoolKind::kUnknown);
}

}  // namespace
}  // namespace pnfsrdma::console::testing

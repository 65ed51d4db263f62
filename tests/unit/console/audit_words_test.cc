// SPDX-License-Identifier: Apache-2.0
#include "server/console/audit_words.h"

#include <gtest/gtest.h>

#include "tests/unit/console/api_world.h"

namespace pnfsrdma::console {
namespace {

Json entry(const char* action, const char* subject, const Json& before, const Json& after, int status = 200) {
  return {{"action", action}, {"subject", subject}, {"before", before}, {"after", after}, {"status", status}};
}

TEST(AuditSummary, NamesThePathAndTheClient) {
  const Json layout{{"path", "/data"}, {"client_name", "host1"}};
  EXPECT_EQ(audit_summary(entry("deleteLayout", "/api/v1/layouts/00-2", layout, nullptr)),
            "revoked the layout of /data from host1");
  EXPECT_EQ(audit_summary(entry("deleteClient", "/api/v1/clients/00", {{"name", "host1"}}, nullptr)),
            "expelled the client host1");
  const Json many{{"layouts", 12}, {"first", {layout}}};
  EXPECT_EQ(audit_summary(entry("deleteLayouts", "/api/v1/layouts", many, nullptr)),
            "revoked 12 layouts, among them that of /data from host1");
}

TEST(AuditSummary, SaysWhatIsOtherThanBefore) {
  EXPECT_EQ(audit_summary(entry("putUser", "/api/v1/users/eve", nullptr, {{"role", "viewer"}})),
            "created the user eve, role viewer");
  EXPECT_EQ(audit_summary(entry("putUser", "/api/v1/users/eve", {{"role", "viewer"}}, {{"role", "admin"}})),
            "changed the user eve: role viewer -> admin");
  EXPECT_EQ(audit_summary(entry("putUser", "/api/v1/users/eve", {{"role", "viewer"}}, {{"role", "viewer"}})),
            "changed the user eve: new password");
  EXPECT_EQ(audit_summary(entry("putExport", "/api/v1/exports/1", {{"path", "/a"}, {"read_only", false}},
                                {{"path", "/a"}, {"read_only", true}})),
            "changed the export /a: read_only false -> true");
  EXPECT_EQ(audit_summary(entry("patchConfiguration", "/api/v1/configuration", Json::object(),
                                {{"log_level", "debug"}, {"small_file_bytes", nullptr}})),
            "set log_level to debug, small_file_bytes to as in the configuration file");
  EXPECT_EQ(
      audit_summary(entry("patchBrick", "/api/v1/bricks/5e", {{"address", "unix:/b"}}, {{"draining", true}})),
      "drained the brick 5e at unix:/b");
  EXPECT_EQ(audit_summary(entry("deleteBrick", "/api/v1/bricks/5e",
                                {{"address", "unix:/b"}, {"name", "north"}}, nullptr)),
            "removed the brick north at unix:/b");
  EXPECT_EQ(audit_summary(entry("postBrickCheck", "/api/v1/bricks/5e/check", nullptr, nullptr)),
            "began to check the brick 5e");
  EXPECT_EQ(audit_summary(entry("postSnapshot", "/api/v1/snapshots", nullptr, {{"name", "monday"}})),
            "took the snapshot monday");
  EXPECT_EQ(audit_summary(entry("postSnapshot", "/api/v1/snapshots", nullptr, Json::object())),
            "took the snapshot named by its time");
  EXPECT_EQ(audit_summary(entry("deleteSnapshot", "/api/v1/snapshots/3", {{"name", "monday"}}, nullptr)),
            "deleted the snapshot monday");
  EXPECT_EQ(
      audit_summary(entry("patchSnapshot", "/api/v1/snapshots/3", {{"name", "monday"}}, {{"pinned", true}})),
      "pinned the snapshot monday");
  EXPECT_EQ(audit_summary(entry("patchSnapshot", "/api/v1/snapshots/3", nullptr, {{"pinned", false}}, 404)),
            "could not unpin the snapshot 3");
  EXPECT_EQ(audit_summary(entry("putSnapshotSchedule", "/api/v1/snapshots/schedule",
                                {{"hourly", 0}, {"daily", 7}}, {{"hourly", 24}, {"daily", 7}})),
            "changed the schedule of snapshots: hourly 0 -> 24");
}

TEST(AuditSummary, SaysWhoseLimitsAreOther) {
  const Json alice{
      {"kind", "user"}, {"id", 1000}, {"name", "alice"}, {"space_hard_bytes", 0}, {"inodes_hard", 5}};
  EXPECT_EQ(
      audit_summary(entry("patchQuota", "/api/v1/quotas/user/1000", alice, {{"space_hard_bytes", 4096}})),
      "set limits of the user alice: space_hard_bytes 0 -> 4096");
  EXPECT_EQ(audit_summary(entry("patchQuota", "/api/v1/quotas/group/7", nullptr, nullptr, 403)),
            "was not permitted to set limits of the group 7");
  EXPECT_EQ(audit_summary(entry("deleteQuota", "/api/v1/quotas/user/1000", alice, nullptr)),
            "removed the limits of the user alice");
  const Json tree{{"kind", "tree"}, {"id", 3}, {"name", "/projects"}};
  EXPECT_EQ(audit_summary(entry("deleteQuota", "/api/v1/quotas/tree/3", tree, nullptr)),
            "removed the quota tree /projects");
  EXPECT_EQ(audit_summary(entry("postQuotaRecount", "/api/v1/quota-recount", nullptr, nullptr)),
            "had all quotas counted again");
  EXPECT_EQ(audit_summary(entry("postQuotaTree", "/api/v1/quota-trees", nullptr, {{"path", "/projects"}})),
            "made the quota tree /projects");
  const Json off{{"state", "off"}, {"space_grace_seconds", 604800}};
  EXPECT_EQ(audit_summary(entry("patchQuotaSettings", "/api/v1/quota-settings", off, {{"on", true}})),
            "switched quotas on");
  EXPECT_EQ(audit_summary(
                entry("patchQuotaSettings", "/api/v1/quota-settings", off, {{"space_grace_seconds", 60}})),
            "changed the settings of quotas: space_grace_seconds 604800 -> 60");
}

TEST(AuditSummary, SaysHowItEnded) {
  EXPECT_EQ(audit_summary(entry("postSession", "/api/v1/session", nullptr, {{"user", "eve"}}, 401)),
            "failed to log in as eve");
  EXPECT_EQ(audit_summary(entry("deleteClient", "/api/v1/clients/0a", nullptr, nullptr, 403)),
            "was not permitted to expel the client 0a");
  EXPECT_EQ(audit_summary(entry("postExport", "/api/v1/exports", nullptr, nullptr, 403)),
            "was not permitted to create an export");
  EXPECT_EQ(audit_summary(entry("putUser", "/api/v1/users/eve", nullptr, nullptr, 403)),
            "was not permitted to change the user eve");
  EXPECT_EQ(audit_summary(entry("postExport", "/api/v1/exports", nullptr, {{"path", "/x"}}, 503)),
            "tried to create the export /x; the outcome is unknown");
}

TEST(AuditSummary, TakesEntriesOfOtherVersions) {
  EXPECT_EQ(audit_summary(Json::object()), " ");
  EXPECT_EQ(audit_summary(entry("postMoon", "/api/v1/moon", 7, "text")), "postMoon /api/v1/moon");
  EXPECT_EQ(audit_summary({{"action", "patchConfiguration"}, {"after", 7}}), "changed settings");
  EXPECT_EQ(audit_summary({{"action", "deleteLayouts"}, {"before", {{"first", 3}}}}), "revoked the layouts");
}

TEST(AuditSummary, IsInTheListAndInTheLog) {
  testing::ApiWorld world;
  ASSERT_EQ(world.send("DELETE", "/api/v1/clients/00000000000a11ce").status, 204);
  const Json items = testing::ApiWorld::json_of(world.send("GET", "/api/v1/audit"))["items"];
  const std::string name = items[0]["before"]["name"];
  EXPECT_EQ(items[0]["summary"], "expelled the client " + name);
}

TEST(PlainText, CannotEndAValueOrALine) {
  EXPECT_EQ(plain_text("eve\" level=\"error\nmds: ready"), "eve? level=?error?mds: ready");
}

}  // namespace
}  // namespace pnfsrdma::console

// SPDX-License-Identifier: Apache-2.0
#include "server/service/journal.h"

#include <gtest/gtest.h>

namespace pnfsrdma {
namespace {

using Fields = std::vector<std::string>;

TEST(JournalFields, NameComponentAndEventOfALine) {
  EXPECT_EQ(
      journal_fields("pnfsrdma-brickd", LogLevel::kWarning, "brick", "lease-expired epoch=3 sessions=2"),
      Fields({"MESSAGE=brick: lease-expired epoch=3 sessions=2", "PRIORITY=4",
              "SYSLOG_IDENTIFIER=pnfsrdma-brickd", "PNFSRDMA_COMPONENT=brick",
              "PNFSRDMA_EVENT=lease-expired"}));
}

TEST(JournalFields, AnEventWithoutValuesIsTheWholeLine) {
  EXPECT_EQ(journal_fields("x", LogLevel::kInfo, "mds", "stopping").back(), "PNFSRDMA_EVENT=stopping");
}

}  // namespace
}  // namespace pnfsrdma

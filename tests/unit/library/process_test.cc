// SPDX-License-Identifier: Apache-2.0
#include "library/process.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pnfsrdma::library {
namespace {

TEST(Process, TheUmaskIsToldAndNotChanged) {
  const mode_t before = ::umask(0027);
  EXPECT_EQ(process_umask(), 0027u);
  EXPECT_EQ(process_umask(), 0027u);
  EXPECT_EQ(::umask(before), 0027u);
}

TEST(Process, AChildCountsOneForkMore) {
  const uint64_t before = forks_before();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(forks_before() == before + 1 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(forks_before(), before);
}

}  // namespace
}  // namespace pnfsrdma::library

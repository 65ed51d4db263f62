// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_size_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace pnfsrdma::fuse_client {
namespace {

TEST(FileSizeLimit, IsTheSoftOneOfItsLine) {
  const std::string text =
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max cpu time              7                    unlimited            seconds   \n"
      "Max file size             4096                 8192                 bytes     \n"
      "Max data size             1                    unlimited            bytes     \n";
  EXPECT_EQ(file_size_limit_in(text), 4096u);
  EXPECT_EQ(
      file_size_limit_in("Max file size             unlimited            unlimited            bytes \n"),
      UINT64_MAX);
  for (const char* wrong : {"", "Max file size", "Max file size     ", "Max data size   1   1"})
    EXPECT_EQ(file_size_limit_in(wrong), UINT64_MAX) << wrong;
}

TEST(FileSizeLimit, IsThatOfAnotherProcess) {
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{12345, 23456};
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    (void)!::write(told[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_EQ(file_size_limit(child), 12345u);
  (void)::kill(child, SIGKILL);
  (void)::waitpid(child, nullptr, 0);
  EXPECT_EQ(file_size_limit(child), UINT64_MAX);
  EXPECT_EQ(file_size_limit(0), UINT64_MAX);
  (void)::close(told[0]);
  (void)::close(told[1]);
}

}  // namespace
}  // namespace pnfsrdma::fuse_client

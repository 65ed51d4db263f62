// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/completion_poller.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace pnfsrdma::initiator {
namespace {

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

TEST(CompletionPoller, WhoSleepsIsWokenByAnIoThatAnotherThreadCompletes) {
  SystemClock clock;
  CompletionPoller poller(clock);
  const int fd = poller.fd();
  ASSERT_GE(fd, 0);
  EXPECT_EQ(poller.fd(), fd);
  poller.begin();
  poller.arm();
  EXPECT_FALSE(readable(fd));
  EXPECT_TRUE(poller.any());
  poller.complete();
  EXPECT_FALSE(poller.any());
  EXPECT_TRUE(readable(fd));
  poller.progress();
  EXPECT_FALSE(readable(fd));
}

TEST(CompletionPoller, WhoIsAwakeIsNotSignalled) {
  SystemClock clock;
  CompletionPoller poller(clock);
  const int fd = poller.fd();
  poller.arm();
  for (int i = 0; i < 3; ++i) {
    poller.begin();
    poller.complete();
    EXPECT_EQ(readable(fd), i == 0) << "once for each arm()";
    poller.progress();
  }
}

TEST(CompletionPoller, WithoutADescriptorItIsPolledAllTheSame) {
  SystemClock clock;
  CompletionPoller poller(clock);
  poller.begin();
  poller.arm();
  poller.complete();
  poller.progress();
  EXPECT_FALSE(poller.any());
}

}  // namespace
}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/door.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "library/mounted/shared_memory.h"
#include "tests/unit/library/mounted/fake_mount.h"

namespace pnfsrdma::library::mounted {
namespace {

using testing::HasSubstr;

TEST(FindMount, AnotherFileSystemIsNamedAsTheCause) {
  const FileDescriptor root(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto found = find_mount(root.get(), "/tmp");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().number(), ENOTSUP);
  EXPECT_THAT(found.error().what(), HasSubstr("/tmp is not on a mount of pnfsrdma-fuse"));
}

TEST(Door, NobodyBehindIt) {
  const auto door = Door::open("pnfsrdma-nobody-is-called-so");
  ASSERT_FALSE(door);
  EXPECT_EQ(door.error().number(), ECONNREFUSED);
  EXPECT_THAT(door.error().what(), HasSubstr("network namespace"));
}

TEST(Door, WhatTheMountRefusesItSaysInWords) {
  FakeMount mount;
  mount.serve("a program too many");
  const auto door = Door::open(mount.name());
  ASSERT_FALSE(door);
  EXPECT_EQ(door.error().number(), ENFILE);
  EXPECT_THAT(door.error().what(), HasSubstr("a program too many"));
}

TEST(Door, RingsThatAreTooShortAreNotTouched) {
  FakeMount mount;
  mount.cut_rings();
  mount.serve();
  const auto door = Door::open(mount.name());
  ASSERT_FALSE(door);
  EXPECT_EQ(door.error().number(), EPROTO);
}

TEST(Door, IsClosedWhenTheMountHasEnded) {
  FakeMount mount;
  mount.serve();
  const auto door = Door::open(mount.name());
  ASSERT_TRUE(door);
  EXPECT_EQ((*door)->depth(), FakeMount::kDepth);
  EXPECT_FALSE((*door)->is_closed());
  mount.die();
  EXPECT_TRUE((*door)->is_closed());
  EXPECT_FALSE(SharedMemory::make(**door, 4096));
}

TEST(Door, AMountThatAnswersNonsenseIsTakenForGone) {
  FakeMount mount;
  mount.serve();
  const auto door = Door::open(mount.name());
  ASSERT_TRUE(door);
  mount.babbles = true;
  const auto memory = SharedMemory::make(**door, 4096);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().number(), EPROTO);
  EXPECT_TRUE((*door)->is_closed());
  mount.babbles = false;
  EXPECT_FALSE(SharedMemory::make(**door, 4096)) << "it would be an answer to another request";
}

TEST(SharedMemory, IsTheSameForBothAndCannotShrink) {
  FakeMount mount;
  mount.serve();
  const auto door = Door::open(mount.name());
  ASSERT_TRUE(door);
  {
    const auto memory = SharedMemory::make(**door, 5000);
    ASSERT_TRUE(memory);
    EXPECT_EQ((*memory)->size(), 8192u);
    const FileDescriptor& theirs = mount.memories().at((*memory)->number());
    (*memory)->data()[8191] = std::byte{42};
    char byte = 0;
    EXPECT_EQ(::pread(theirs.get(), &byte, 1, 8191), 1);
    EXPECT_EQ(byte, 42);
    EXPECT_NE(::fcntl(theirs.get(), F_GET_SEALS) & F_SEAL_SHRINK, 0);
    EXPECT_NE(::ftruncate(theirs.get(), 0), 0);
  }
  EXPECT_TRUE(mount.memories().empty());
}

TEST(SharedMemory, AChildHasItNot) {
  FakeMount mount;
  mount.serve();
  const auto door = Door::open(mount.name());
  const auto memory = SharedMemory::make(**door, 4096);
  ASSERT_TRUE(memory);
  const pid_t child = ::fork();
  // mincore(2) of what is not mapped is ENOMEM.
  unsigned char resident = 0;
  if (child == 0) ::_exit(::mincore((*memory)->data(), 4096, &resident) != 0 && errno == ENOMEM ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace pnfsrdma::library::mounted

// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/host_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace pnfsrdma::cli {
namespace {

class HostFiles : public ::testing::Test {
 protected:
  HostFiles() {
    char name[] = "/tmp/pnfsrdma-files.XXXXXX";
    folder = ::mkdtemp(name);
  }
  ~HostFiles() override { std::filesystem::remove_all(folder); }
  mode_t mode_of(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }
  size_t count() {
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      files += entry.is_regular_file() ? 1 : 0;
    return files;
  }
  std::string folder;
};

TEST_F(HostFiles, AreMadeWithTheirDirectoriesAndModes) {
  const std::string path = folder + "/a/secret";
  const auto copy = write_host_file({.path = path, .content = "one", .mode = 0600});
  ASSERT_TRUE(copy);
  EXPECT_EQ(*copy, "");
  EXPECT_EQ(mode_of(path), 0600);
  EXPECT_EQ(mode_of(folder + "/a"), 0755);
  EXPECT_EQ(**read_host_file(path), "one");
  EXPECT_EQ(*read_host_file(folder + "/none"), std::nullopt);
}

TEST_F(HostFiles, WhatTheyReplaceIsKeptAndItsModeStays) {
  const std::string path = folder + "/config";
  ASSERT_TRUE(write_host_file({.path = path, .content = "one", .mode = 0640}));
  const auto copy = write_host_file({.path = path, .content = "two", .mode = 0644, .keep_copy = true});
  ASSERT_TRUE(copy);
  EXPECT_TRUE(copy->starts_with(path + ".before-"));
  EXPECT_EQ(**read_host_file(*copy), "one");
  EXPECT_EQ(**read_host_file(path), "two");
  EXPECT_EQ(mode_of(path), 0640);
  EXPECT_EQ(count(), 2);
}

TEST_F(HostFiles, TheSameContentChangesNothing) {
  const std::string path = folder + "/config";
  ASSERT_TRUE(write_host_file({.path = path, .content = "one"}));
  EXPECT_EQ(*write_host_file({.path = path, .content = "one", .keep_copy = true}), "");
  EXPECT_EQ(count(), 1);
}

TEST_F(HostFiles, WhatACrashLeftBehindIsInNobodysWay) {
  const std::string path = folder + "/config";
  ASSERT_TRUE(write_host_file({.path = path + ".new", .content = "hal"}));
  ASSERT_TRUE(write_host_file({.path = path, .content = "whole"}));
  EXPECT_EQ(**read_host_file(path), "whole");
  EXPECT_EQ(count(), 1);
}

TEST_F(HostFiles, ArePutAside) {
  const std::string path = folder + "/config";
  EXPECT_EQ(*put_aside(path), "");
  ASSERT_TRUE(write_host_file({.path = path, .content = "one"}));
  const auto aside = put_aside(path);
  ASSERT_TRUE(aside);
  EXPECT_EQ(**read_host_file(*aside), "one");
  EXPECT_EQ(*read_host_file(path), std::nullopt);
}

}  // namespace
}  // namespace pnfsrdma::cli

// SPDX-License-Identifier: Apache-2.0
#include "library/mounted/names.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace pnfsrdma::library::mounted {
namespace {

class NamesTest : public testing::Test {
 protected:
  NamesTest() : folder_(::mkdtemp(template_)) {
    std::filesystem::create_directories(folder_ / "root/d");
    std::ofstream(folder_ / "root/file") << "found";
    std::ofstream(folder_ / "secret") << "not below";
    names_.emplace(FileDescriptor(::open((folder_ / "root").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  }
  ~NamesTest() override { std::filesystem::remove_all(folder_); }

  void link(const char* target, const char* name) const {
    std::filesystem::create_symlink(target, folder_ / "root" / name);
  }

  char template_[32] = "/tmp/pnfsrdma-names.XXXXXX";
  const std::filesystem::path folder_;
  std::optional<Names> names_;
};

template <typename T>
int error_of(const Result<T>& result) {
  return result ? 0 : result.error().number();
}

TEST_F(NamesTest, PathsAreThoseBelowTheDirectory) {
  for (const char* path : {"file", "/file", "//file", "./d/../file"})
    EXPECT_EQ(error_of(names_->open(path, O_RDONLY)), 0) << path;
  for (const char* path : {"/", "///", ".", "d/.."})
    EXPECT_EQ(names_->status(path)->st_ino, names_->status("d/..")->st_ino) << path;
  EXPECT_EQ(error_of(names_->status("")), ENOENT);
  EXPECT_EQ(error_of(names_->status("file/")), ENOTDIR);
  EXPECT_EQ(error_of(names_->open("absent", O_RDONLY)), ENOENT);
}

TEST_F(NamesTest, NothingLeadsOut) {
  link("../secret", "up");
  link("/etc/passwd", "away");
  link("..", "parent");
  for (const char* path : {"../secret", "/../secret", "d/../../secret", "up", "away", "parent/secret"}) {
    EXPECT_EQ(error_of(names_->open(path, O_RDONLY)), EXDEV) << path;
    EXPECT_EQ(error_of(names_->status(path)), EXDEV) << path;
  }
  for (const char* path : {"../secret", "parent/secret", "d/../../secret"}) {
    EXPECT_EQ(error_of(names_->unlink(path)), EXDEV) << path;
    EXPECT_EQ(error_of(names_->make_directory(path, 0700)), EXDEV) << path;
    EXPECT_EQ(error_of(names_->rename("file", path)), EXDEV) << path;
    EXPECT_EQ(error_of(names_->rename(path, "taken")), EXDEV) << path;
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / "secret"));
}

TEST_F(NamesTest, LinksWithinAreFollowedOnTheWayOnly) {
  link("d", "link");
  ASSERT_TRUE(names_->open("link/new", O_WRONLY | O_CREAT, 0600));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "root/d/new"));
  EXPECT_EQ(error_of(names_->remove_directory("link")), ENOTDIR);
  EXPECT_EQ(error_of(names_->unlink("link/new")), 0);
  EXPECT_EQ(error_of(names_->unlink("link")), 0);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "root/d"));
}

TEST_F(NamesTest, TheEndOfAPathSaysWhatItNames) {
  EXPECT_EQ(error_of(names_->unlink("d")), EISDIR);
  EXPECT_EQ(error_of(names_->unlink("/")), EISDIR);
  EXPECT_EQ(error_of(names_->unlink("d/.")), EISDIR);
  EXPECT_EQ(error_of(names_->unlink("d/..")), EISDIR);
  EXPECT_EQ(error_of(names_->unlink("file/")), ENOTDIR);
  EXPECT_EQ(error_of(names_->remove_directory("file")), ENOTDIR);
  EXPECT_EQ(error_of(names_->remove_directory("d/.")), EINVAL);
  EXPECT_EQ(error_of(names_->remove_directory("d/..")), ENOTEMPTY);
  EXPECT_EQ(error_of(names_->make_directory("/", 0700)), EEXIST);
  EXPECT_EQ(error_of(names_->make_directory("d/e/", 0700)), 0);
  EXPECT_EQ(error_of(names_->rename("file", "moved/")), ENOTDIR);
  EXPECT_EQ(error_of(names_->rename("d/e/", "e/")), 0);
  EXPECT_EQ(error_of(names_->rename("d/.", "x")), EBUSY);
  EXPECT_EQ(error_of(names_->remove_directory("e/")), 0);
}

}  // namespace
}  // namespace pnfsrdma::library::mounted

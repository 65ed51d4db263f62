// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "cli/tree/make_alike.h"
#include "cli/tree/restorer.h"
#include "cli/tree/snapshot_path.h"
#include "cli/tree/tree_diff.h"

namespace pnfsrdma::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Two directories of an ordinary file system: bytes are copied there, all else is as on a mount.
class Trees : public ::testing::Test {
 protected:
  Trees() {
    std::string name = (fs::temp_directory_path() / "trees-XXXXXX").string();
    home = mkdtemp(name.data());
    before = home / "before";
    after = home / "after";
    fs::create_directory(before);
    fs::create_directory(after);
  }
  ~Trees() override { fs::remove_all(home); }

  static void write(const fs::path& path, const std::string& text, time_t time = 1000) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    at(path, time);
  }
  static void at(const fs::path& path, time_t time) {
    const std::array<timespec, 2> times = {{{time, 5}, {time, 7}}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW), 0);
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Both have the same directories, so their times do not count.
  void both(const std::string& name, const std::string& text) {
    write(before / name, text);
    write(after / name, text);
  }
  std::vector<std::string> diff(bool content = false) {
    at(before, 1);
    at(after, 1);
    const Tree one = *Tree::open(before);
    const Tree other = *Tree::open(after);
    TreeDiff compared(one, other, content, [](const std::string&) {});
    compared.run();
    EXPECT_THAT(compared.problems(), IsEmpty());
    std::vector<std::string> lines;
    for (const Difference& each : compared.differences()) {
      std::string line = std::string(word_of(each.kind)) + ' ' + each.path;
      if (!each.to.empty()) line += " to " + each.to;
      for (const std::string& word : each.aspects.words()) line += ' ' + word;
      lines.push_back(line);
    }
    return lines;
  }
  Restored restore(bool remove_new = false) {
    const Tree one = *Tree::open(before);
    const Tree other = *Tree::open(after);
    Restorer restorer(one, other, {.remove_new = remove_new}, interrupted, [](const std::string&) {});
    restorer.run();
    return restorer.restored();
  }

  fs::path home, before, after;
  std::atomic<bool> interrupted = false;
};

TEST_F(Trees, FilesOfOneSizeAndTimeAreTheSame) {
  both("a", "text");
  both("d/b", "text");
  at(before / "d", 3);
  at(after / "d", 3);
  EXPECT_THAT(diff(), IsEmpty());
}

TEST_F(Trees, BytesAreReadOnlyWhenThatIsWanted) {
  write(before / "other-bytes", "text");
  write(after / "other-bytes", "TEXT");
  write(before / "other-time", "text", 1000);
  write(after / "other-time", "text", 2000);
  EXPECT_THAT(diff(), ElementsAre("modified other-time data"));
  EXPECT_THAT(diff(true), ElementsAre("modified other-bytes data", "attributes other-time times"));
}

TEST_F(Trees, HolesAreTheSameAsZeros) {
  write(before / "file", "begin");
  write(after / "file", "begin");
  fs::resize_file(before / "file", 8 << 20);
  fs::resize_file(after / "file", 8 << 20);
  const int file = open((after / "file").c_str(), O_WRONLY);
  const std::string zeros(1 << 20, '\0');
  ASSERT_EQ(pwrite(file, zeros.data(), zeros.size(), 3 << 20), 1 << 20);
  at(before / "file", 5);
  at(after / "file", 5);
  EXPECT_THAT(diff(true), IsEmpty());
  ASSERT_EQ(pwrite(file, "x", 1, 7 << 20), 1);
  close(file);
  EXPECT_THAT(diff(true), ElementsAre("modified file data"));
}

TEST_F(Trees, EveryKindOfDifferenceHasItsWord) {
  write(before / "gone/file", "x");
  write(after / "new/file", "y");
  both("mode", "x");
  chmod((after / "mode").c_str(), 0600);
  fs::create_symlink("here", before / "link");
  fs::create_symlink("there", after / "link");
  at(before / "link", 9);
  at(after / "link", 9);
  both("type", "x");
  fs::remove(after / "type");
  write(after / "type/below", "x");
  both("linked", "x");
  fs::create_hard_link(before / "linked", before / "second");
  write(after / "second", "x");
  EXPECT_THAT(diff(), ElementsAre("removed gone/", "removed gone/file", "modified link target",
                                  "attributes mode mode", "added new/", "added new/file",
                                  "attributes second links", "modified type/ type", "added type/below"));
}

TEST_F(Trees, ARenamedFileIsFoundByItsInode) {
  write(before / "old", "x");
  fs::create_hard_link(before / "old", after / "new");
  EXPECT_THAT(diff(), ElementsAre("renamed old to new"));
}

TEST_F(Trees, ATreeBecomesWhatItWas) {
  write(before / "deep/er/file", "text");
  write(before / "one", "linked");
  fs::create_hard_link(before / "one", before / "deep/two");
  fs::create_symlink("one", before / "link");
  chmod((before / "deep").c_str(), 0500);
  write(after / "one", "something else");
  write(after / "new/file", "new");
  mkfifo((before / "fifo").c_str(), 0640);
  at(before / "deep/er", 11);
  at(before / "deep", 12);
  at(before, 13);
  const Restored done = restore();
  EXPECT_THAT(done.problems, IsEmpty());
  EXPECT_EQ(done.files, 4);
  EXPECT_EQ(done.links, 1);
  EXPECT_EQ(done.directories, 2);
  EXPECT_EQ(done.kept, 1);
  EXPECT_EQ(read(after / "deep/two"), "linked");
  EXPECT_EQ(fs::hard_link_count(after / "one"), 2);
  struct stat status{};
  ASSERT_EQ(stat(after.c_str(), &status), 0);
  EXPECT_EQ(status.st_mtim.tv_sec, 13);
  EXPECT_EQ(restore(true).removed, 2);
  EXPECT_THAT(diff(), IsEmpty());
  const Restored again = restore(true);
  EXPECT_EQ(again.files + again.links + again.directories + again.removed + again.attributes, 0);
  chmod((before / "deep").c_str(), 0700);
  chmod((after / "deep").c_str(), 0700);
}

TEST_F(Trees, WhatIsOneFileNowBecomesTwoAgain) {
  write(before / "one", "x");
  write(before / "two", "x");
  write(after / "one", "x");
  fs::create_hard_link(after / "one", after / "two");
  const Restored done = restore();
  EXPECT_THAT(done.problems, IsEmpty());
  EXPECT_EQ(done.files, 1);
  EXPECT_EQ(fs::hard_link_count(after / "one"), 1);
}

TEST_F(Trees, AFileThatIsOpenIsReplacedAndNotChanged) {
  write(before / "file", "as it was");
  write(after / "file", "of now", 2000);
  std::ifstream reader(after / "file");
  restore();
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(reader), {}), "of now");
  EXPECT_EQ(read(after / "file"), "as it was");
}

TEST_F(Trees, NothingIsDoneBehindALink) {
  write(before / "directory/file", "x");
  const fs::path elsewhere = home / "elsewhere";
  write(elsewhere / "file", "not to be touched");
  fs::create_symlink(elsewhere, after / "directory");
  restore(true);
  EXPECT_EQ(read(elsewhere / "file"), "not to be touched");
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(after / "directory")));
  EXPECT_EQ(read(after / "directory/file"), "x");
  fs::create_symlink(elsewhere, after / "new");
  restore(true);
  EXPECT_EQ(read(elsewhere / "file"), "not to be touched");
}

TEST_F(Trees, ADirectoryInTheWayOfAFileStaysUnlessItIsToGo) {
  write(before / "name", "x");
  write(after / "name/file", "y");
  const Restored done = restore();
  ASSERT_THAT(done.problems, SizeIs(1));
  EXPECT_THAT(done.problems[0].error, HasSubstr("--delete"));
  EXPECT_EQ(read(after / "name/file"), "y");
  EXPECT_THAT(restore(true).problems, IsEmpty());
  EXPECT_EQ(read(after / "name"), "x");
}

TEST_F(Trees, WhatAKilledRunLeftGoes) {
  write(after / ".pnfsrdma-restore-0123abcd", "half");
  write(after / ".pnfsrdma-restore-other", "a file of somebody");
  EXPECT_EQ(restore().removed, 1);
  EXPECT_FALSE(fs::exists(after / ".pnfsrdma-restore-0123abcd"));
  EXPECT_TRUE(fs::exists(after / ".pnfsrdma-restore-other"));
}

TEST_F(Trees, WhatIsHeldIsChangedWhateverHasItsNameMeanwhile) {
  write(before / "file", "x");
  write(after / "file", "x");
  write(after / "another", "y");
  chmod((after / "another").c_str(), 0600);
  const Tree one = *Tree::open(before);
  const Tree other = *Tree::open(after);
  const FileDescriptor from = *one.directory("");
  const FileDescriptor to = *other.directory("");
  Entry source = *one.find(from.get(), "file");
  source.status.mode = S_IFREG | 0640;
  const Entry found = *other.find(to.get(), "file");
  const Held held = *other.hold(found);
  fs::rename(after / "file", after / "moved");
  fs::rename(after / "another", after / "file");
  ASSERT_TRUE(make_alike(held, source));
  EXPECT_EQ(fs::status(after / "moved").permissions(), fs::perms(0640));
  EXPECT_EQ(fs::status(after / "file").permissions(), fs::perms(0600));
  EXPECT_EQ(other.hold(found).error().number(), ESTALE);
}

TEST_F(Trees, WhatIsInTheWayStaysUntilItsReplacementIsThere) {
  write(before / "directory/file", "x");
  write(after / "directory", "a file now");
  write(before / "file", "x");
  write(after / "file/below/this", "a directory now");
  // What would be beside it cannot be: nothing has gone.
  struct rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &files), 0);
  const struct rlimit none{0, files.rlim_max};
  const auto ignored = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const Restored refused = restore(true);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &files), 0);
  signal(SIGXFSZ, ignored);
  EXPECT_THAT(refused.problems, SizeIs(2)) << "file, directory/file";
  EXPECT_EQ(read(after / "file/below/this"), "a directory now");
  EXPECT_THAT(restore(true).problems, IsEmpty());
  EXPECT_THAT(diff(), IsEmpty());
  EXPECT_EQ(std::distance(fs::directory_iterator(after), {}), 2);
}

TEST_F(Trees, AnEmptyDirectoryOfAKilledRunGoesAndOneWithSomethingStays) {
  fs::create_directory(after / ".pnfsrdma-restore-00000001");
  write(after / ".pnfsrdma-restore-00000002/was here", "in the way");
  const Restored done = restore();
  EXPECT_EQ(done.removed, 1);
  EXPECT_EQ(done.kept, 1);
  EXPECT_EQ(restore(true).removed, 2);
  EXPECT_TRUE(fs::is_empty(after));
}

TEST_F(Trees, NoPathIsTooLong) {
  const std::string name(200, 'n');
  constexpr int kDeep = 50;
  int directory = open(before.c_str(), O_DIRECTORY);
  for (int i = 0; i < kDeep; ++i) {
    ASSERT_EQ(mkdirat(directory, name.c_str(), 0700), 0);
    const int below = openat(directory, name.c_str(), O_DIRECTORY);
    ASSERT_GE(below, 0);
    close(directory);
    directory = below;
  }
  for (const char* file : {"file", "link"}) {
    const int made = openat(directory, file, O_CREAT | O_WRONLY, 0600);
    ASSERT_EQ(::write(made, file, 4), 4);
    close(made);
  }
  ASSERT_EQ(unlinkat(directory, "link", 0), 0);
  ASSERT_EQ(linkat(directory, "file", directory, "link", 0), 0);
  close(directory);
  const Restored done = restore();
  EXPECT_THAT(done.problems, IsEmpty());
  EXPECT_EQ(done.directories, kDeep);
  EXPECT_EQ(done.links, 1);
  EXPECT_THAT(diff(), IsEmpty());
  std::swap(before, after);
  fs::remove_all(after);
  fs::create_directory(after);
  std::swap(before, after);
  EXPECT_EQ(restore(true).removed, kDeep + 2);
}

TEST_F(Trees, InterruptedItDoesNoMore) {
  write(before / "file", "x");
  interrupted = true;
  EXPECT_EQ(restore().files, 0);
  EXPECT_FALSE(fs::exists(after / "file"));
}

TEST_F(Trees, OnlyAMountHasPathsInSnapshots) {
  write(home / ".snapshots/name/file", "x");
  const auto path = snapshot_path((home / ".snapshots/name/file").string());
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ExitCode::kUsage);
  EXPECT_FALSE(snapshot_path((home / "none").string()));
}

}  // namespace
}  // namespace pnfsrdma::cli

// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

#include "shared/base/owned.h"

namespace pnfsrdma::pmem {
namespace {

constexpr int64_t kTmpfsMagic = 0x01021994;

// A file of 4 MiB in `folder`, gone with it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& folder) : path_(folder + "/pmem-test.XXXXXX") {
    const FileDescriptor fd(mkstemp(path_.data()));
    EXPECT_TRUE(fd);
    EXPECT_EQ(ftruncate(fd.get(), 4 << 20), 0);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

bool is_tmpfs(const std::string& folder) {
  struct statfs status{};
  return statfs(folder.c_str(), &status) == 0 && status.f_type == kTmpfsMagic;
}

// A folder of a disk's file system, if this machine has one for us.
std::string disk_folder() {
  for (const char* folder : {".", "/var/tmp", "/tmp"}) {
    if (!is_tmpfs(folder) && access(folder, W_OK) == 0) return folder;
  }
  return {};
}

TEST(Mapping, AnonymousMemoryIsVolatile) {
  const auto mapping = Mapping::anonymous(1 << 20);
  ASSERT_TRUE(mapping);
  EXPECT_EQ((*mapping)->medium().kind, Kind::kMemory);
  EXPECT_EQ((*mapping)->make_persistence(FileFlush::kSync)->durability(), Durability::kVolatile);
}

TEST(Mapping, TmpfsNeverClaimsMoreThanVolatile) {
  if (!is_tmpfs("/dev/shm")) GTEST_SKIP() << "/dev/shm is no tmpfs here";
  const TemporaryFile file("/dev/shm");
  const auto mapping = Mapping::open(file.path());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  EXPECT_EQ((*mapping)->medium().kind, Kind::kTmpfs);
  EXPECT_EQ((*mapping)->make_persistence(FileFlush::kSync)->durability(), Durability::kVolatile);
  EXPECT_EQ((*mapping)->make_persistence(FileFlush::kPageCache)->durability(), Durability::kVolatile);
}

TEST(Mapping, PlainFileIsPowerByMsyncAndProcessWithout) {
  if (disk_folder().empty()) GTEST_SKIP() << "no folder on a disk";
  const TemporaryFile file(disk_folder());
  const auto mapping = Mapping::open(file.path());
  ASSERT_TRUE(mapping) << mapping.error().to_string();
  if ((*mapping)->medium().kind != Kind::kFile) GTEST_SKIP() << "a DAX file system";
  const auto synced = (*mapping)->make_persistence(FileFlush::kSync);
  EXPECT_EQ(synced->durability(), Durability::kPower);
  EXPECT_TRUE(synced->blocks());
  EXPECT_EQ((*mapping)->make_persistence(FileFlush::kPageCache)->durability(), Durability::kProcess);
}

TEST(Mapping, BytesPersistedAreInTheFileAfterIsReopened) {
  const TemporaryFile file("/tmp");
  {
    const auto mapping = Mapping::open(file.path());
    ASSERT_TRUE(mapping);
    const auto persistence = (*mapping)->make_persistence(FileFlush::kSync);
    const std::string_view text = "durable";
    std::byte* place = (*mapping)->bytes().data() + 12345;
    persistence->copy(place, as_bytes(text));
    EXPECT_TRUE(persistence->persist({place, text.size()}));
    persistence->zero((*mapping)->bytes().first(16));
    EXPECT_TRUE(persistence->persist((*mapping)->bytes().first(16)));
  }
  const auto again = Mapping::open(file.path());
  ASSERT_TRUE(again);
  EXPECT_EQ(as_text((*again)->bytes().subspan(12345, 7)), "durable");
}

struct CachedPages {
  uint64_t cached, dirty, written_back, evicted, recently_evicted;
};
// cachestat(2), Linux 6.5. None: not known.
std::optional<CachedPages> cached_pages(const std::string& path, uint64_t offset, uint64_t length) {
  constexpr long kCachestat = 451;
  struct {
    uint64_t offset, length;
  } range{offset, length};
  CachedPages pages{};
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || syscall(kCachestat, fd.get(), &range, &pages, 0) != 0) return std::nullopt;
  return pages;
}

// A file on a disk, mapped; the test is skipped where that cannot be, or the kernel has no cachestat(2).
class DiskMapping : public testing::Test {
 protected:
  void SetUp() override {
    if (disk_folder().empty()) GTEST_SKIP() << "no folder on a disk";
    file_ = std::make_unique<TemporaryFile>(disk_folder());
    open();
    if (mapping->medium().kind != Kind::kFile) GTEST_SKIP() << "a DAX file system";
    if (!cached_pages(file_->path(), 0, 1)) GTEST_SKIP() << "the kernel has no cachestat(2)";
  }
  void open() {
    mapping.reset();
    auto opened = Mapping::open(file_->path());
    ASSERT_TRUE(opened) << opened.error().to_string();
    mapping = std::move(*opened);
    persistence = mapping->make_persistence(FileFlush::kSync);
  }
  uint64_t dirty_pages() const {
    const auto pages = cached_pages(file_->path(), 0, mapping->bytes().size());
    return pages->dirty + pages->written_back;
  }
  uint64_t pages_in_cache() const { return cached_pages(file_->path(), 0, mapping->bytes().size())->cached; }
  void forget_pages() {
    persistence.reset();
    mapping.reset();
    const FileDescriptor fd(::open(file_->path().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(fd && fdatasync(fd.get()) == 0 && posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) == 0);
    open();
  }

  std::unique_ptr<Mapping> mapping;
  std::unique_ptr<Persistence> persistence;

 private:
  std::unique_ptr<TemporaryFile> file_;
};

TEST_F(DiskMapping, ManyRangesPersistedAtOnceAreAllOnTheDisk) {
  constexpr size_t kApart = 100'000, kCount = 40;
  std::vector<ByteSpan> ranges;
  for (size_t number = 0; number < kCount; ++number) {
    const MutableByteSpan range = mapping->bytes().subspan(number * kApart, 9000);
    std::ranges::fill(range, std::byte{7});
    ranges.push_back(range);
  }
  ASSERT_GE(dirty_pages(), 2 * kCount);
  EXPECT_TRUE(persistence->persist_all(ranges));
  EXPECT_EQ(dirty_pages(), 0U);
}

// The kernel knows pages in larger units when it reads them ahead, and a store makes a whole unit dirty.
TEST_F(DiskMapping, AStoreMakesOnePageDirty) {
  const MutableByteSpan bytes = mapping->bytes();
  for (size_t at = 0; at < bytes.size(); at += 4096) bytes[at] = std::byte{1};
  ASSERT_TRUE(persistence->persist(bytes));
  ASSERT_EQ(dirty_pages(), 0U);
  bytes[1 << 20] = std::byte{2};
  EXPECT_EQ(dirty_pages(), 1U);
}

TEST_F(DiskMapping, WhatIsReadAheadIsInThePageCache) {
  std::ranges::fill(mapping->bytes(), std::byte{3});
  forget_pages();
  ASSERT_LT(pages_in_cache(), 100U);
  mapping->read_ahead(mapping->bytes().subspan(4096, 2 << 20));
  for (int tries = 0; pages_in_cache() < 512 && tries < 1000; ++tries) usleep(10'000);
  EXPECT_GE(pages_in_cache(), 512U);
  EXPECT_EQ(mapping->bytes()[1 << 20], std::byte{3});
}

TEST_F(DiskMapping, AWriteBackThatFailsIsAnErrorOfAllThatShareIt) {
  // What lies behind the mapping is no part of the file.
  const ByteSpan all = mapping->bytes();
  const std::vector<ByteSpan> ranges = {all.first(1), {all.data() + all.size() + (1 << 30), 1}};
  EXPECT_FALSE(persistence->persist_all(ranges));
}

TEST(Mapping, SecondOpenIsRefusedWithTheReason) {
  const TemporaryFile file("/tmp");
  const auto first = Mapping::open(file.path());
  ASSERT_TRUE(first);
  const auto second = Mapping::open(file.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().number(), EWOULDBLOCK);
  EXPECT_NE(second.error().to_string().find("another"), std::string::npos);
}

TEST(Mapping, MissingFileAndFolderAreErrors) {
  EXPECT_EQ(Mapping::open("/tmp/pmem-test-that-is-not-there").error().number(), ENOENT);
  EXPECT_FALSE(Mapping::open("/tmp"));
}

TEST(DetectMedium, CharacterDeviceThatIsNotDaxIsRefused) {
  const FileDescriptor fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(fd);
  const auto medium = detect_medium(fd.get());
  ASSERT_FALSE(medium);
  EXPECT_EQ(medium.error().number(), EINVAL);
}

}  // namespace
}  // namespace pnfsrdma::pmem

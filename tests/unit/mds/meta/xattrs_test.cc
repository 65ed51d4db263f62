// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/xattrs.h"

#include <gtest/gtest.h>

#include "server/mds/meta/keys.h"
#include "server/mds/meta/namespace_check.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

using nfs4::Status;

class XattrsTest : public OverBothEngines {
 protected:
  XattrsTest() { open(1); }
  void TearDown() override {
    const auto report = check_namespace(*store_);
    ASSERT_TRUE(report);
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
  }

  void open(uint64_t boot) {
    names_ = Namespace::open(*store_, clock_, boot).value();
    xattrs_.emplace(*names_);
    names_->set_in_use([](InodeId) { return false; });
  }
  InodePointer make(std::string_view name, FileType type = FileType::kRegular) {
    return names_->create(kRootInode, name, {.type = type, .mode = 0644}).value().inode;
  }
  InodePointer now(const InodePointer& inode) { return names_->get(inode->id).value(); }
  Status set(const InodePointer& inode, std::string_view name, std::string_view value,
             XattrMode mode = XattrMode::kEither) {
    const auto done = xattrs_->set(*now(inode), name, as_bytes(value), mode);
    return done ? Status::kOk : done.error();
  }
  std::string get(const InodePointer& inode, std::string_view name) {
    const auto value = xattrs_->get(*now(inode), name);
    return value ? std::string(as_text(*value)) : std::string(nfs4::to_string(value.error()));
  }
  Status remove(const InodePointer& inode, std::string_view name) {
    const auto done = xattrs_->remove(*now(inode), name);
    return done ? Status::kOk : done.error();
  }
  bool has_row(const InodePointer& inode) {
    return store_->get(number_key(kXattrTag, inode->id)).value().has_value();
  }

  ManualClock clock_;
  std::unique_ptr<Namespace> names_;
  std::optional<Xattrs> xattrs_;
};

TEST_P(XattrsTest, AreSetReadListedAndRemoved) {
  const InodePointer file = make("f");
  EXPECT_EQ(get(file, "a"), "NFS4ERR_NOXATTR");
  EXPECT_EQ(set(file, "b", "two"), Status::kOk);
  EXPECT_EQ(set(file, "a", ""), Status::kOk);
  EXPECT_EQ(set(file, "b", "other"), Status::kOk);
  EXPECT_EQ(get(file, "a"), "");
  EXPECT_EQ(get(file, "b"), "other");
  EXPECT_EQ(xattrs_->list(*now(file)).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(remove(file, "a"), Status::kOk);
  EXPECT_EQ(remove(file, "a"), Status::kNoXattr);
  EXPECT_EQ(xattrs_->list(*now(file)).value(), std::vector<std::string>{"b"});
  EXPECT_EQ(remove(file, "b"), Status::kOk);
  EXPECT_FALSE(has_row(file));
  EXPECT_EQ(now(file)->flags & kInodeHasXattrs, 0u);
}

TEST_P(XattrsTest, TheModeSaysHowANameIsMet) {
  const InodePointer file = make("f");
  EXPECT_EQ(set(file, "a", "1", XattrMode::kReplace), Status::kNoXattr);
  EXPECT_EQ(set(file, "a", "1", XattrMode::kCreate), Status::kOk);
  EXPECT_EQ(set(file, "a", "2", XattrMode::kCreate), Status::kExist);
  EXPECT_EQ(set(file, "a", "2", XattrMode::kReplace), Status::kOk);
  EXPECT_EQ(get(file, "a"), "2");
}

TEST_P(XattrsTest, AChangeMovesChangeAndCtimeAndNotMtime) {
  const InodePointer file = make("f");
  clock_.advance(Milliseconds(5));
  const auto changed = xattrs_->set(*file, "a", {}, XattrMode::kEither).value();
  EXPECT_EQ(changed.before, file->change);
  EXPECT_GT(changed.after, changed.before);
  EXPECT_EQ(now(file)->change, changed.after);
  EXPECT_EQ(now(file)->ctime, clock_.wall_now());
  EXPECT_EQ(now(file)->mtime, file->mtime);
}

TEST_P(XattrsTest, NamesAndSizesHaveLimits) {
  const InodePointer file = make("f");
  EXPECT_EQ(set(file, "", "1"), Status::kInval);
  EXPECT_EQ(set(file, std::string_view("a\0b", 3), "1"), Status::kInval);
  EXPECT_EQ(set(file, std::string(256, 'n'), "1"), Status::kNameTooLong);
  EXPECT_EQ(set(file, std::string(255, 'n'), "1"), Status::kOk);
  const std::string most(kXattrBytesMax, 'v');
  EXPECT_EQ(set(file, "m", most), Status::kOk) << "the longest value that there is";
  const std::string rest(kXattrRowBytesMax - most.size() - 255 - 1 - 1 - 1, 'v');
  EXPECT_EQ(set(file, "n", rest + "more"), Status::kNoSpc);
  EXPECT_EQ(set(file, "n", rest), Status::kOk) << "the names and the value of the first are 258 bytes";
  EXPECT_EQ(set(file, "o", ""), Status::kNoSpc);
  EXPECT_EQ(get(file, "m"), most);
}

TEST_P(XattrsTest, ThereAreNoMoreThanLinuxCanList) {
  const InodePointer file = make("f");
  constexpr size_t kListed = 255 + sizeof "user.";
  Status last = Status::kOk;
  size_t there = 0;
  for (size_t i = 0; last == Status::kOk; ++i) {
    std::string name = std::to_string(i);
    name.resize(255, '.');
    last = set(file, name, "");
    if (last == Status::kOk) ++there;
  }
  EXPECT_EQ(last, Status::kNoSpc);
  EXPECT_LE(there * kListed, 65536U);
  EXPECT_GT((there + 2) * kListed, 65536U);
}

TEST_P(XattrsTest, LiveWithTheInodeAndGoWithIt) {
  const InodePointer file = make("f");
  const InodePointer directory = make("d", FileType::kDirectory);
  const InodePointer target = make("t");
  for (const InodePointer& one : {file, directory, target}) ASSERT_EQ(set(one, "a", "1"), Status::kOk);
  names_.reset();
  store_.reopen();
  open(2);
  EXPECT_EQ(get(file, "a"), "1");
  ASSERT_TRUE(names_->remove(kRootInode, "d"));
  EXPECT_FALSE(has_row(directory));
  ASSERT_TRUE(names_->rename(kRootInode, "f", kRootInode, "t"));
  EXPECT_FALSE(has_row(target));
  EXPECT_EQ(get(file, "a"), "1");
}

TEST_P(XattrsTest, OfAnOrphanGoWithTheOrphan) {
  const InodePointer file = make("f");
  ASSERT_EQ(set(file, "a", "1"), Status::kOk);
  names_->set_in_use([](InodeId) { return true; });
  ASSERT_TRUE(names_->remove(kRootInode, "f").value().orphaned);
  EXPECT_EQ(get(file, "a"), "1");
  ASSERT_TRUE(names_->destroy(file->id));
  EXPECT_FALSE(has_row(file));
}

PNFSRDMA_OVER_BOTH_ENGINES(XattrsTest);

}  // namespace
}  // namespace pnfsrdma::mds

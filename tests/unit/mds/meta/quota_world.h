// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/mds/meta/extents.h"
#include "server/mds/meta/keys.h"
#include "server/mds/meta/namespace.h"
#include "server/mds/meta/namespace_check.h"
#include "server/mds/meta/values.h"
#include "tests/doubles/manual_clock.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {

// A tree of files whose users, groups and trees are counted; the checker has to agree at the end.
class QuotaWorld : public OverBothEngines {
 protected:
  using Status = nfs4::Status;

  QuotaWorld() { open(1); }
  void TearDown() override {
    if (broken_) return;
    const auto report = check_namespace(*store_);
    ASSERT_TRUE(report);
    for (const std::string& problem : report->problems) ADD_FAILURE() << problem;
  }
  void broken_on_purpose() { broken_ = true; }

  void open(uint64_t boot) {
    boot_ = boot;
    auto opened = Namespace::open(*store_, clock_, boot, {.cached_inodes = 16, .cached_names = 16});
    ASSERT_TRUE(opened) << opened.error().to_string();
    names_ = *std::move(opened);
    names_->set_in_use([](InodeId) { return false; });
  }
  void restart() {
    names_.reset();
    store_.reopen();
    open(boot_ + 1);
  }

  static QuotaId user(uint64_t number) { return {QuotaKind::kUser, number}; }
  static QuotaId group(uint64_t number) { return {QuotaKind::kGroup, number}; }
  static QuotaId tree(const QuotaTree& tree) { return {QuotaKind::kTree, tree.number.value}; }
  Quotas& quotas() { return names_->quotas(); }
  QuotaUsage usage(const QuotaId& id) { return quotas().usage(id).value(); }
  void limit(const QuotaId& id, const QuotaLimits& limits) {
    ASSERT_TRUE(quotas().set_limits(id, limits, clock_.wall_now()));
  }

  void begin() {
    ASSERT_TRUE(quotas().begin());
    count_all();
  }
  void count_slice(size_t most) {
    const auto slice = quotas().next_slice(most);
    ASSERT_TRUE(slice);
    ASSERT_TRUE(quotas().count(*slice, clock_.wall_now()));
  }
  void count_all() {
    while (!quotas().counted()) count_slice(100);
  }

  Outcome<Created> create(const std::string& name, uint32_t uid, uint32_t gid, InodeId directory = kRootInode,
                          FileType type = FileType::kRegular) {
    return names_->create(directory, name, {.type = type, .mode = 0644, .uid = uid, .gid = gid});
  }
  InodeId make(InodeId directory, const std::string& name, uint32_t uid = 0, uint32_t gid = 0,
               FileType type = FileType::kRegular) {
    return create(name, uid, gid, directory, type).value().inode->id;
  }
  InodeId make_directory(const std::string& name, InodeId parent = kRootInode) {
    return make(parent, name, 0, 0, FileType::kDirectory);
  }
  InodeId id_of(const std::string& name, InodeId directory = kRootInode) {
    return names_->lookup(directory, name).value()->id;
  }
  // nullopt: an engine in memory has none until it is raised.
  std::optional<uint64_t> stored_format() {
    const auto stored = store_->get(meta_key("format")).value();
    return stored ? std::optional(read_value<StoredNumber>(*stored, "the format")->number) : std::nullopt;
  }

  // Memory behind what the file has.
  Status give_status(InodeId file, uint64_t bytes) {
    const InodePointer inode = names_->get(file).value();
    ExtentChange extents(*store_, file);
    EXPECT_TRUE(extents.insert({inode->space_used, next_logical_, bytes, 0}));
    next_logical_ += bytes;
    Batch batch;
    extents.write_to(batch);
    return status(names_->update(file, {.space_used = inode->space_used + bytes}, batch));
  }
  void give(InodeId file, uint64_t bytes) { ASSERT_EQ(give_status(file, bytes), Status::kOk); }
  // All of it.
  void take(InodeId file) {
    ExtentChange extents(*store_, file);
    ASSERT_TRUE(extents.remove(0, names_->get(file).value()->space_used));
    Batch batch;
    extents.write_to(batch);
    ASSERT_EQ(status(names_->update(file, {.space_used = 0}, batch)), Status::kOk);
  }

  template <typename T>
  static Status status(const Outcome<T>& outcome) {
    return outcome ? Status::kOk : outcome.error();
  }

  ManualClock clock_;
  uint64_t boot_ = 0;
  std::unique_ptr<Namespace> names_;
  uint64_t next_logical_ = uint64_t{1} << 30;
  bool broken_ = false;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
// A log that has lost what was synced is refused, whatever took it; what a crash leaves is not.
#include "server/mds/meta/log_extent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "server/mds/meta/boot_record.h"
#include "tests/doubles/seeded_random.h"
#include "tests/unit/mds/meta/store_under_test.h"

namespace pnfsrdma::mds {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSmallMemtable = 64 << 10;

class LogExtentTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<KeyValueStore>> open(bool accept_loss = false) {
    return RocksdbStore::open(
        loop_,
        {.path = path_, .memtable_bytes = memtable_bytes_, .accept_loss = accept_loss, .env = files_.env()});
  }
  // Each is durable before the next begins.
  static void put(KeyValueStore& store, int from, int to) {
    for (int i = from; i < to; ++i) {
      Batch batch;
      batch.put("k" + std::to_string(i), std::string(400, 'v'));
      ASSERT_TRUE(store.commit(batch, CommitKind::kNamespace));
      ASSERT_TRUE(store.sync());
    }
  }
  // A store with `changes` synced ones, whose daemon was killed.
  void killed_after(int changes) {
    auto store = open().value();
    put(*store, 0, changes);
  }
  std::vector<std::string> logs() const {
    std::vector<std::string> found;
    std::error_code gone;  // RocksDB removes old logs on a thread of its own
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path().extension() != ".log") continue;
      const uint64_t size = entry.file_size(gone);
      if (!gone && size > 0) found.push_back(entry.path().string());
    }
    std::ranges::sort(found);
    return found;
  }
  static void flip(const std::string& path, uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<long>(at));
    std::string bytes(8, '\0');
    file.read(bytes.data(), 8);
    for (char& byte : bytes) byte = static_cast<char>(~byte);
    file.seekp(static_cast<long>(at));
    file.write(bytes.data(), 8);
  }
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(path_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      all[entry.path().filename()] = std::string(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }
  void expect_refusal(const std::string& named) {
    const auto before = contents();
    for (int i = 0; i < 2; ++i) {
      const auto refused = open();
      ASSERT_FALSE(refused);
      EXPECT_EQ(refused.error().number(), EUCLEAN);
      EXPECT_NE(refused.error().what().find(named), std::string::npos) << refused.error().what();
      EXPECT_NE(refused.error().what().find("--accept-metadata-loss"), std::string::npos);
    }
    EXPECT_EQ(contents(), before) << "nothing may be changed";
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  TemporaryDirectory directory_;
  CrashFileSystem files_;
  const std::string path_ = directory_.path() + "/store";
  uint64_t memtable_bytes_ = uint64_t{32} << 20;
};

TEST_F(LogExtentTest, DamageInTheMiddleOfWhatWasSyncedIsRefusedAndNothingIsChanged) {
  killed_after(300);
  ASSERT_EQ(logs().size(), 1u);
  flip(logs().back(), fs::file_size(logs().back()) / 2);
  expect_refusal(logs().back());
}

TEST_F(LogExtentTest, AtEachPlaceOfTheLog) {
  killed_after(40);
  const auto sound = contents();
  const std::string log = logs().back();
  const uint64_t size = fs::file_size(log);
  for (uint64_t at = 3; at + 8 < size; at += 997) {
    std::ofstream(log, std::ios::binary) << sound.at(fs::path(log).filename());
    flip(log, at);
    const auto refused = open();
    ASSERT_FALSE(refused) << "damaged at " << at;
    EXPECT_EQ(refused.error().number(), EUCLEAN);
  }
}

TEST_F(LogExtentTest, TheLastSyncedChangeIsMissedToo) {
  killed_after(50);
  fs::resize_file(logs().back(), fs::file_size(logs().back()) - 1);
  expect_refusal(logs().back());
}

TEST_F(LogExtentTest, SoIsALogThatIsGone) {
  killed_after(50);
  fs::remove(logs().back());
  expect_refusal("changes");
}

TEST_F(LogExtentTest, AnOldMarkIsMadeUpForByTheBatchesBehindTheDamage) {
  auto store = open().value();
  put(*store, 0, 20);
  const std::string old = contents().at("sync-mark");
  put(*store, 20, 300);
  store.reset();
  std::ofstream(path_ + "/sync-mark", std::ios::binary) << old;
  flip(logs().back(), fs::file_size(logs().back()) / 2);
  expect_refusal(logs().back());
}

// The manifest, too, says how far the store went: no further than its tables.
TEST_F(LogExtentTest, TablesWrittenMeanwhileHideNoDamage) {
  memtable_bytes_ = kSmallMemtable;
  int changes = 0;
  auto store = open().value();
  for (int round = 0; round < 4; ++round) {
    const std::vector<std::string> before = logs();
    while (logs() == before && changes < 5000) put(*store, changes, changes + 1), ++changes;
    for (int i = 0; i < 20; ++i) put(*store, changes, changes + 1), ++changes;
  }
  store.reset();
  flip(logs().back(), 100);
  expect_refusal(logs().back());
}

TEST_F(LogExtentTest, WhoAcceptsTheLossKeepsACopyAndWhatCanBeRead) {
  killed_after(300);
  flip(logs().back(), fs::file_size(logs().back()) / 2);
  const auto before = contents();
  const std::string boot = read_host_boot_id(path_).value();
  {
    auto store = open(true).value();
    EXPECT_TRUE(store->get("k0").value());
    EXPECT_FALSE(store->get("k299").value());
    put(*store, 300, 310);
  }
  EXPECT_NE(read_host_boot_id(path_).value(), boot) << "clients' state may be newer than the store";
  std::ifstream copy(path_ + ".damaged-1/" + fs::path(before.rbegin()->first).string());
  EXPECT_TRUE(copy);
  for (const auto& [name, bytes] : before) {
    std::ifstream file(path_ + ".damaged-1/" + name, std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), bytes) << name;
  }
  auto again = open().value();
  EXPECT_TRUE(again->get("k309").value());
}

TEST_F(LogExtentTest, WithNothingLostNothingIsCopied) {
  killed_after(10);
  ASSERT_TRUE(open(true));
  EXPECT_FALSE(fs::exists(path_ + ".damaged-1"));
}

TEST_F(LogExtentTest, ATornTailThatWasNotSyncedIsTaken) {
  for (const std::string& tail : {std::string("torn"), std::string(5000, '\0'), std::string(40000, 'x')}) {
    fs::remove_all(path_);
    killed_after(30);
    std::ofstream(logs().back(), std::ios::app | std::ios::binary) << tail;
    auto store = open();
    ASSERT_TRUE(store) << store.error().to_string();
    EXPECT_TRUE((*store)->get("k29").value());
  }
}

TEST_F(LogExtentTest, AStoreWithoutAMarkIsTaken) {
  killed_after(30);
  fs::remove(path_ + "/sync-mark");
  auto store = open();
  ASSERT_TRUE(store) << store.error().to_string();
  EXPECT_TRUE((*store)->get("k29").value());
}

TEST_F(LogExtentTest, AMarkThatCannotBeReadIsMadeAnew) {
  killed_after(30);
  std::ofstream(path_ + "/sync-mark") << "no mark";
  ASSERT_TRUE(open());
  killed_after(60);
  flip(logs().back(), fs::file_size(logs().back()) / 2);
  expect_refusal(logs().back());
}

// Tables written in between, logs begun and dropped, unsynced ends torn: never a false alarm.
TEST_F(LogExtentTest, NoCrashIsTakenForDamage) {
  memtable_bytes_ = kSmallMemtable;
  SeededRandom random(7);
  for (int round = 0; round < 25; ++round) {
    auto opened = open();
    ASSERT_TRUE(opened) << "round " << round << ": " << opened.error().to_string();
    KeyValueStore& store = **opened;
    const uint64_t steps = random.next_u64() % 300;
    for (uint64_t i = 0; i < steps; ++i) {
      Batch batch;
      for (uint64_t k = random.next_u64() % 4 + 1; k > 0; --k) {
        const std::string key = "k" + std::to_string(random.next_u64() % 300);
        if (random.next_u64() % 3 == 0)
          batch.erase(key);
        else
          batch.put(key, std::string(random.next_u64() % 900, 'v'));
      }
      const bool waits = random.next_u64() % 2 == 0;
      // EAGAIN: the tables are behind.
      static_cast<void>(store.commit(batch, waits ? CommitKind::kNamespace : CommitKind::kState));
      if (random.next_u64() % 50 == 0) static_cast<void>(store.sync());
    }
    if (random.next_u64() % 3 == 0) static_cast<void>(store.close());
    const bool power = random.next_u64() % 2 == 0;
    if (power) files_.power_off();
    opened->reset();
    if (power) static_cast<void>(files_.lose_unsynced(&random));
  }
}

}  // namespace
}  // namespace pnfsrdma::mds

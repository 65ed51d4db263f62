// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/recaller.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>

namespace pnfsrdma::initiator {
namespace {

// Tasks that wait until they are let go, and what has begun and ended.
class RecallerTest : public ::testing::Test {
 protected:
  Recaller::Task held(const std::string& name) {
    return [this, name] {
      std::unique_lock lock(mutex);
      begun += name;
      changed.notify_all();
      changed.wait(lock, [&] { return all_free || name != "s"; });
      ended += name;
      changed.notify_all();
    };
  }
  void await(const std::string& what, const std::string& list) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return list == what; }))
        << list << ", not " << what;
  }
  void let_go() {
    std::lock_guard lock(mutex);
    all_free = true;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool all_free = false;
  std::string begun, ended;
  int files[16] = {}, silent = 0, well = 0;
};

TEST_F(RecallerTest, ASilentBrickHoldsUpItsOwnFilesOnly) {
  Recaller recaller(8);
  for (int i = 0; i < 10; ++i) recaller.post({&files[i], {&silent}}, held("s"));
  await("ss", begun);  // a quarter of the threads
  for (int i = 10; i < 14; ++i) recaller.post({&files[i], {&well}}, held("w"));
  await("wwww", ended);
  let_go();
  await("wwwwssssssssss", ended);
}

TEST_F(RecallerTest, RecallsOfOneFileRunInTheirOrder) {
  Recaller recaller(8);
  recaller.post({&files[0], {&silent}}, held("s"));
  await("s", begun);
  recaller.post({&files[0], {}}, held("a"));
  recaller.post({&files[0], {}}, held("b"));
  recaller.post({&files[1], {}}, held("c"));
  await("c", ended);
  EXPECT_EQ(begun, "sc");
  let_go();
  await("csab", ended);
}

TEST_F(RecallerTest, OneThatIsHeldUpByItsBrickIsNotOvertakenByItsFilesNext) {
  Recaller recaller(8);
  for (int i = 0; i < 2; ++i) recaller.post({&files[i], {&silent}}, held("s"));
  await("ss", begun);
  recaller.post({&files[2], {&silent}}, held("a"));
  recaller.post({&files[2], {}}, held("b"));
  recaller.post({&files[3], {}}, held("c"));
  await("c", ended);
  let_go();
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return ended.size() == 5; })) << ended;
    // The first of the two that were held may leave room before the other one has ended.
    EXPECT_LT(ended.find('a'), ended.find('b')) << ended;
  }
}

TEST_F(RecallerTest, WithoutThreadsItIsDoneAtOnce) {
  Recaller recaller(0);
  recaller.post({&files[0], {}}, held("a"));
  EXPECT_EQ(ended, "a");
}

}  // namespace
}  // namespace pnfsrdma::initiator

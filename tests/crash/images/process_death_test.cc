// SPDX-License-Identifier: Apache-2.0
// One of the processes dies and is started again; memory stays, so not even unflushed bytes may be lost.
#include <gtest/gtest.h>

#include "shared/base/log.h"
#include "tests/crash/images/checker.h"
#include "tests/crash/images/scenario.h"
#include "tests/crash/images/workload.h"
#include "tests/doubles/seeded_random.h"

namespace pnfsrdma::crash {
namespace {

class ProcessDeath : public ::testing::Test {
 protected:
  ProcessDeath() {
    set_log_level(LogLevel::kOff);
    system_ = std::make_unique<System>(System::fresh(1, make_metadata(Engine::kMemory, 1)), power_, 1);
    client_ = std::make_unique<Client>(*system_, journal_);
    EXPECT_TRUE(system_->ready() && client_->start());
  }

  void expect_sound() {
    for (const std::string& problem : Checker(*system_, *client_, journal_).check()) ADD_FAILURE() << problem;
  }

  Power power_;
  Journal journal_;
  std::unique_ptr<System> system_;
  std::unique_ptr<Client> client_;
};

TEST_F(ProcessDeath, OfTheBrickKeepsUnflushedBytesBelowTheEnd) {
  OpenFile* file = client_->open("a", true);
  ASSERT_TRUE(client_->write(*file, 0, 8 * kGrain, 0) && client_->sync(*file, Flush::kNative));
  ASSERT_TRUE(client_->write(*file, kGrain, 2 * kGrain, 0));
  system_->restart_brick();
  ASSERT_TRUE(system_->ready());
  client_->brick_lost();
  // Flushed through a new connection; the verifier is the same.
  ASSERT_TRUE(client_->sync(*file, Flush::kMessage));
  expect_sound();
}

TEST_F(ProcessDeath, OfTheBrickZeroesWhatWasNeverCommitted) {
  OpenFile* file = client_->open("a", true);
  ASSERT_TRUE(client_->write(*file, 0, kGrain, 0) && client_->sync(*file, Flush::kNative));
  ASSERT_TRUE(client_->write(*file, kGrain, 4 * kGrain, 0));
  system_->restart_brick();
  ASSERT_TRUE(system_->ready());
  client_->brick_lost();
  ASSERT_TRUE(client_->truncate(*file, 3 * kGrain));
  expect_sound();
}

TEST_F(ProcessDeath, OfTheMetadataServerKeepsAllItHasAnswered) {
  SeededRandom random(5);
  Workload workload(*client_, journal_, random);
  for (int step = 0; step < 15; ++step) workload.fixed_step(step);
  system_->restart_metadata_server();
  expect_sound();
}

TEST_F(ProcessDeath, OfEitherAgainAndAgainAmidRandomWork) {
  SeededRandom random(6);
  Workload workload(*client_, journal_, random);
  for (int round = 0; round < 12 && !HasFailure(); ++round) {
    for (int step = 0; step < 15; ++step) workload.random_step();
    if (round % 2 == 0) {
      system_->restart_brick();
      ASSERT_TRUE(system_->ready());
      client_->brick_lost();
    } else {
      system_->restart_metadata_server();
    }
    expect_sound();
  }
  EXPECT_GT(client_->done, 200u);
}

}  // namespace
}  // namespace pnfsrdma::crash

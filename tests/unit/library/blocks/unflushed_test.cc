// SPDX-License-Identifier: Apache-2.0
#include "library/blocks/unflushed.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace pnfsrdma::library::blocks {
namespace {

Unflushed::Verifier verifier(uint8_t number) {
  Unflushed::Verifier made{};
  made.fill(static_cast<std::byte>(number));
  return made;
}

int settled(const Unflushed::Taken& taken, uint8_t under) {
  const Result<> result = Unflushed::settle(taken, verifier(under));
  return result ? 0 : result.error().number();
}

TEST(Unflushed, AFlushUnderTheSameVerifierLosesNothing) {
  Unflushed unflushed;
  unflushed.wrote(0, 100, verifier(1));
  EXPECT_EQ(settled(unflushed.take(0, 100), 1), 0);
  EXPECT_EQ(settled(unflushed.take(0, 100), 2), 0) << "it has been flushed";
}

TEST(Unflushed, AFlushUnderAnotherVerifierTellsOfTheLossOnce) {
  Unflushed unflushed;
  unflushed.wrote(0, 100, verifier(1));
  EXPECT_EQ(settled(unflushed.take(200, 100), 2), 0) << "nothing was written there";
  EXPECT_EQ(settled(unflushed.take(50, 100), 2), EIO);
  EXPECT_EQ(settled(unflushed.take(50, 100), 2), 0);
  EXPECT_EQ(settled(unflushed.take(0, 50), 2), EIO) << "the rest of it";
}

TEST(Unflushed, AWriteUnderAnotherVerifierDoesNotHideTheLoss) {
  Unflushed unflushed;
  unflushed.wrote(0, 100, verifier(1));
  unflushed.wrote(500, 100, verifier(2));
  EXPECT_EQ(settled(unflushed.take(500, 100), 2), EIO);
  EXPECT_EQ(settled(unflushed.take(0, 1000), 2), 0);
}

TEST(Unflushed, WhatIsDurableAndWrittenAgainIsNotLost) {
  Unflushed unflushed;
  unflushed.wrote(0, 100, verifier(1));
  unflushed.wrote_durably(0, 100);
  EXPECT_EQ(settled(unflushed.take(0, 100), 2), 0);
}

TEST(Unflushed, AFlushThatFailsLeavesEverythingToTheNextOne) {
  Unflushed unflushed;
  unflushed.wrote(0, 100, verifier(1));
  unflushed.put_back(unflushed.take(0, 100));
  EXPECT_EQ(settled(unflushed.take(0, 100), 2), EIO);

  unflushed.wrote(0, 100, verifier(2));
  const auto taken = unflushed.take(0, 100);
  unflushed.wrote(300, 100, verifier(3));
  unflushed.put_back(taken);
  EXPECT_EQ(settled(unflushed.take(300, 1), 3), EIO) << "both cannot be there any more";
}

}  // namespace
}  // namespace pnfsrdma::library::blocks

// SPDX-License-Identifier: Apache-2.0
#include "shared/base/lifetime.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

namespace pnfsrdma {
namespace {

TEST(Lifetime, ACallbackRunsWhileItsOwnerIsThere) {
  const Lifetime lifetime;
  int seen = 0;
  const std::function<void(int)> callback = lifetime.guard([&](int value) { seen = value; });
  callback(7);
  EXPECT_EQ(seen, 7);
}

TEST(Lifetime, AndNeverAfterItsEnd) {
  std::optional<Lifetime> lifetime(std::in_place);
  int calls = 0;
  const auto callback = lifetime->guard([&] { ++calls; });
  lifetime.reset();
  callback();
  EXPECT_EQ(calls, 0);
}

TEST(Lifetime, EndsBeforeItsOwnerWhenToldSo) {
  Lifetime lifetime;
  int calls = 0;
  auto callback = lifetime.guard([&, count = 0]() mutable { calls = ++count; });
  callback();
  lifetime.end();
  callback();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(lifetime.token().expired());
}

TEST(Lifetime, ArgumentsArePassedAsTheyCame) {
  const Lifetime lifetime;
  std::string taken;
  const std::function<void(std::string)> callback =
      lifetime.guard([&](std::string&& text) { taken = std::move(text); });
  callback("moved");
  EXPECT_EQ(taken, "moved");
}

}  // namespace
}  // namespace pnfsrdma

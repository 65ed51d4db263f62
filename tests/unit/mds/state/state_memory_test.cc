// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/state_memory.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <functional>

#include "server/mds/state/delegation_table.h"
#include "server/mds/state/lock_table.h"
#include "server/mds/state/open_state.h"
#include "shared/base/random.h"
#include "tests/doubles/seeded_random.h"
#ifdef __SANITIZE_ADDRESS__
extern "C" size_t __sanitizer_get_current_allocated_bytes();  // of libasan
#endif

namespace pnfsrdma::mds {
namespace {

constexpr size_t kEach = 10'000;

size_t allocated() {
#ifdef __SANITIZE_ADDRESS__
  return __sanitizer_get_current_allocated_bytes();  // what was asked for, without what the heap adds
#else
  return mallinfo2().uordblks;
#endif
}

// What each of many takes is near the estimate.
void expect_near(const char* what, size_t estimate, const std::function<void(size_t)>& add) {
  const size_t before = allocated();
  for (size_t i = 0; i < kEach; ++i) add(i);
  const size_t each = (allocated() - before) / kEach;
  std::printf("%-24s %4zu bytes, estimated %4zu\n", what, each, estimate);
  EXPECT_GT(each, estimate / 2) << what;
  EXPECT_LT(each, estimate * 5 / 4) << what;
}

TEST(StateMemoryEstimates, AreNearWhatTheHeapGives) {
  SeededRandom random{1};
  OpenTable opens;
  LockTable locks;
  LockTable ranges;
  DelegationTable delegations;
  expect_near("open", StateMemory::kOpenBytes, [&](size_t i) {
    OpenState open;
    open.other = make_stateid_other(StateKind::kOpen, SteadyTime(), random);
    open.client = 1;
    open.inode = i;
    opens.add(std::move(open));
  });
  const auto lock = [&](size_t i) {
    LockState state;
    state.other = make_stateid_other(StateKind::kLock, SteadyTime(), random);
    state.client = 1;
    state.inode = i;
    std::ranges::copy(as_bytes("0123456789ab"), state.open.begin());
    store_big_endian(state.open.data(), uint64_t{i});
    return state;
  };
  expect_near("lock owner", StateMemory::kLockBytes, [&](size_t i) { locks.add(lock(i)); });
  constexpr size_t kRanges = 1000;
  expect_near("ranges of a lock", kRanges * StateMemory::kRangeBytes / 100, [&](size_t i) {
    if (i % 100 != 0) return;
    LockState state = lock(i);
    for (uint64_t at = 0; at < kRanges; ++at) state.ranges.lock({2 * at, 2 * at, true});
    ranges.add(std::move(state));
  });
  expect_near("delegation", StateMemory::kDelegationBytes, [&](size_t i) {
    DelegationState state;
    state.other = make_stateid_other(StateKind::kDelegation, SteadyTime(), random);
    state.client = 1;
    state.inode = i;
    state.handle = nfs4::FileHandle(Bytes(32));
    delegations.add(std::move(state));
  });
}

}  // namespace
}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/fiber.h"

#include <sys/mman.h>

#include "shared/base/check.h"

namespace pnfsrdma::simulated {

namespace {

constexpr size_t kGuardBytes = 4096;
constexpr size_t kStackBytes = size_t{256} << 10;

}  // namespace

Fiber::Fiber(uint64_t count, std::function<void()> what) : number(count), body(std::move(what)) {
  stack_ =
      mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(stack_ != MAP_FAILED && mprotect(stack_, kGuardBytes, PROT_NONE) == 0);
}

Fiber::~Fiber() {
  munmap(stack_, kGuardBytes + kStackBytes);
}

void Fiber::prepare(void (*entry)()) {
  CHECK(getcontext(&context) == 0);
  context.uc_stack.ss_sp = static_cast<char*>(stack_) + kGuardBytes;
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, entry, 0);
}

}  // namespace pnfsrdma::simulated

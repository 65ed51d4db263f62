// SPDX-License-Identifier: Apache-2.0
#include "shared/version/version.h"

#include <fmt/core.h>

#include <string_view>

#include <version_number.h>  // packaging/version.sh makes it

namespace pnfsrdma {
namespace {

// libibverbs calls itself 1.14.44.0: the last two are rdma-core's.
std::string_view rdma_core() {
  std::string_view text = PNFSRDMA_RDMA_CORE_VERSION;
  for (int part = 0; part < 2; ++part) text.remove_prefix(text.find('.') + 1);
  return text;
}

const char* yes_or_no(bool built_in) {
  return built_in ? "yes" : "no";
}

}  // namespace

const char* version() {
  return PNFSRDMA_VERSION;
}

std::string version_text(const std::string& program) {
  std::string text =
      fmt::format("{} {}\nbuilt with rdma-core {}, native flush: {}, atomic write: {}, libpmem2 {}", program,
                  version(), rdma_core(), yes_or_no(PNFSRDMA_NATIVE_FLUSH), yes_or_no(PNFSRDMA_ATOMIC_WRITE),
                  PNFSRDMA_LIBPMEM2_VERSION);
  const std::string_view sanitizers = PNFSRDMA_SANITIZE;
  if (!sanitizers.empty()) text += fmt::format(", sanitizers: {} (slow: for tests)", sanitizers);
  return text;
}

}  // namespace pnfsrdma

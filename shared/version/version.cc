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

}  // namespace

const char* version() {
  return PNFSRDMA_VERSION;
}

std::string version_text(const std::string& program) {
  std::string text =
      fmt::format("{} {}\nbuilt with rdma-core {}, native flush: {}, libpmem2 {}", program, version(),
                  rdma_core(), PNFSRDMA_NATIVE_FLUSH ? "yes" : "no", PNFSRDMA_LIBPMEM2_VERSION);
  const std::string_view sanitizers = PNFSRDMA_SANITIZE;
  if (!sanitizers.empty()) text += fmt::format(", sanitizers: {} (slow: for tests)", sanitizers);
  return text;
}

}  // namespace pnfsrdma

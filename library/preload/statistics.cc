// SPDX-License-Identifier: Apache-2.0
#include "library/preload/statistics.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace pnfsrdma::preload {
namespace {

constexpr std::array<const char*, kReasons> kNames = {
    "append", "sync",   "length",     "end",   "cached", "unsure",  "sequence",    "kept",
    "alone",  "shared", "privileges", "limit", "flags",  "refused", "handed-back", "gone"};

}  // namespace

size_t Statistics::print(char* text, size_t size) const {
  size_t used = 0;
  const auto add = [&](const char* format, auto... values) {
    const int length = std::snprintf(text + used, size - used, format, values...);
    used = std::min(used + static_cast<size_t>(std::max(length, 0)), size - 1);
  };
  uint64_t by_kernel = 0;
  for (const auto& each : kernel_) by_kernel += each;
  add("pnfsrdma-preload: process=%d program=%s ring-reads=%llu ring-writes=%llu ring-bytes=%llu kernel=%llu",
      static_cast<int>(::getpid()), program_invocation_short_name,
      static_cast<unsigned long long>(ring_reads_), static_cast<unsigned long long>(ring_writes_),
      static_cast<unsigned long long>(ring_bytes_), static_cast<unsigned long long>(by_kernel));
  for (size_t i = 0; i < kReasons; ++i) {
    if (kernel_[i] > 0) add(" %s=%llu", kNames[i], static_cast<unsigned long long>(kernel_[i]));
  }
  add("\n");
  return used;
}

}  // namespace pnfsrdma::preload

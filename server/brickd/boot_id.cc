// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/boot_id.h"

#include <charconv>
#include <fstream>
#include <string>

namespace pnfsrdma::brick {

Result<BootId> read_boot_id() {
  static constexpr const char* kFile = "/proc/sys/kernel/random/boot_id";
  std::string text;
  if (!(std::ifstream(kFile) >> text)) return fail(ENOENT, std::string("reading ") + kFile);
  std::erase(text, '-');
  BootId boot{};
  if (text.size() != boot.size() * 2) return fail(EPROTO, std::string(kFile) + " is not a UUID");
  for (size_t i = 0; i < boot.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) {
      return fail(EPROTO, std::string(kFile) + " is not a UUID");
    }
    boot[i] = static_cast<std::byte>(value);
  }
  return boot;
}

}  // namespace pnfsrdma::brick

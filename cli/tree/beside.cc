// SPDX-License-Identifier: Apache-2.0
#include "cli/tree/beside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <string_view>
#include <utility>

namespace pnfsrdma::cli {
namespace {

constexpr std::string_view kBegin = ".pnfsrdma-restore-";
constexpr size_t kDigits = 8;
constexpr int kTries = 100;

}  // namespace

Result<Beside> Beside::make(int directory, const std::function<int(const char* name)>& make) {
  std::random_device dice;
  for (int tried = 0; tried < kTries; ++tried) {
    const std::string name = fmt::format("{}{:08x}", kBegin, dice());
    if (make(name.c_str()) >= 0) return Beside(directory, name);
    if (errno != EEXIST) return fail(errno, "create");
  }
  return fail(EEXIST, "create");
}

Beside::Beside(Beside&& other) noexcept
    : directory_(other.directory_), name_(std::exchange(other.name_, {})) {}

Beside::~Beside() {
  if (name_.empty()) return;
  if (unlinkat(directory_, name_.c_str(), 0) != 0) (void)unlinkat(directory_, name_.c_str(), AT_REMOVEDIR);
}

Result<> Beside::become(const std::string& name) {
  if (renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0) return fail(errno, "rename");
  name_.clear();
  return {};
}

Result<> Beside::exchange(const std::string& name) {
  if (renameat2(directory_, name_.c_str(), directory_, name.c_str(), RENAME_EXCHANGE) != 0)
    return fail(errno, "rename");
  return {};
}

bool Beside::is_leftover(const std::string& name) {
  return name.starts_with(kBegin) && name.size() == kBegin.size() + kDigits &&
         name.find_first_not_of("0123456789abcdef", kBegin.size()) == std::string::npos;
}

}  // namespace pnfsrdma::cli

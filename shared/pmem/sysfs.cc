// SPDX-License-Identifier: Apache-2.0
#include "shared/pmem/sysfs.h"

#include <fmt/core.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

namespace pnfsrdma::pmem {

std::optional<std::string> Sysfs::attribute(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!file || (!std::getline(file, line) && !file.eof())) return std::nullopt;
  return line;
}

std::string Sysfs::place(const char* type, dev_t device) const {
  std::error_code error;
  const auto place = std::filesystem::canonical(
      fmt::format("{}/dev/{}/{}:{}", root_, type, major(device), minor(device)), error);
  return error ? std::string() : place.string();
}

}  // namespace pnfsrdma::pmem

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/console_options.h"
#include "shared/version/version.h"

#include <filesystem>

namespace pnfsrdma::mds {

namespace {

std::string web_directory(const Config& config) {
  if (!config.console.web_directory.empty()) return config.console.web_directory;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto beside = program.parent_path().parent_path() / "web";
  if (!error && std::filesystem::exists(beside / "index.html", error)) return beside;
  return PNFSRDMA_WEB_DIRECTORY;
}

}  // namespace

console::ConsoleOptions console_options(const Config& config, const std::string& config_path) {
  return {.listen = config.console.listen,
          .socket = config.console.socket,
          .directory = console_directory(config),
          .certificate = config.console.certificate,
          .key = config.console.key,
          .web_directory = web_directory(config),
          .version = version(),
          .configuration_file = config_path,
          .password_cost = {}};
}

}  // namespace pnfsrdma::mds

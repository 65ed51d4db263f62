// SPDX-License-Identifier: Apache-2.0
#include "cli/api/token.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace pnfsrdma::cli {
namespace {

constexpr mode_t kOthers = 0077;

Outcome<std::string> read_token(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const ExitCode code = errno == EACCES ? ExitCode::kNotPermitted : ExitCode::kNotFound;
    return refuse(code, "token file " + path + ": " + std::strerror(errno), {},
                  "pnfsrdma token create NAME >" + path);
  }
  if ((status.st_mode & kOthers) != 0) {
    return refuse(ExitCode::kNotPermitted, "token file " + path + ": others may read it", {},
                  "chmod 600 " + path);
  }
  std::ifstream file(path);
  std::string token;
  std::getline(file, token);
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.empty()) return refuse(ExitCode::kUsage, "token file " + path + ": the first line is empty");
  return token;
}

}  // namespace

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

Outcome<std::string> find_token(const ApiOptions& options) {
  if (!options.token_file.empty()) return read_token(options.token_file);
  if (const std::string path = environment("PNFSRDMA_TOKEN_FILE"); !path.empty()) return read_token(path);
  return environment("PNFSRDMA_TOKEN");
}

}  // namespace pnfsrdma::cli

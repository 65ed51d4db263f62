// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "cli/output/failure.h"

namespace pnfsrdma::cli {

// Files of this host that a command writes. Each is there whole or as it was before, after a crash too. Errors name the
// path. One thread.
struct HostFile {
  std::string path;
  std::string content;
  mode_t mode = 0644;
  std::string user;  // who may read it, if this is root and there is such a user; empty: who runs the command
  bool keep_copy = false;  // of what it replaces: PATH.before-TIME. Its owner and mode stay then, too
};

// nullopt: there is none. kNotPermitted, kFailed.
Outcome<std::optional<std::string>> read_host_file(const std::string& path);

// Makes the directories above it, too. Nothing is done if the file has this content. The path of the copy; empty: none
// was needed.
Outcome<std::string> write_host_file(const HostFile& file);

// Gives it the name PATH.before-TIME, which is returned; empty: there was no such file or directory.
Outcome<std::string> put_aside(const std::string& path);

}  // namespace pnfsrdma::cli

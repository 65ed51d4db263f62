// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "shared/base/guarded.h"
#include "shared/base/random.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// What proves, before there is a password, that a caller on this host may read root's files: a secret in a
// file of mode 0600. The log says where the file is, never what is in it. Thread-safe.
class SetupToken {
 public:
  SetupToken(std::string path, Random& random) : path_(std::move(path)), random_(random) {}

  // A new one, in a new file. EACCES, ENOSPC and their like.
  Result<> create();
  // It is used up, or no longer needed: file and token go.
  void destroy();
  bool matches(const std::string& token);
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  Random& random_;
  Guarded<std::optional<std::string>> token_;
};

}  // namespace pnfsrdma::console

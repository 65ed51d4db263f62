// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "server/console/json.h"
#include "shared/base/result.h"

namespace pnfsrdma::console {

// One JSON value in a file of mode 0600: after a crash the old one or the new one, never a piece.
class KeptFile {
 public:
  explicit KeptFile(std::string path) : path_(std::move(path)) {}

  // None: there is no file. EUCLEAN: it holds no JSON.
  Result<std::optional<Json>> load() const;
  // On the medium when it returns. ENOSPC and what else the file system gives: the old one is there then.
  Result<> store(const Json& json) const;
  Result<> remove() const;
  const std::string& path() const { return path_; }

 private:
  Result<> sync_folder() const;

  const std::string path_;
};

}  // namespace pnfsrdma::console

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "library/directory.h"
#include "library/mounted/names.h"

namespace pnfsrdma::library::mounted {

// As the kernel reads it.
class MountedDirectory final : public Directory {
 public:
  static Result<std::unique_ptr<MountedDirectory>> open(Connection& connection, const Names& names,
                                                        std::string_view path);

  Result<bool> next(struct dirent& entry) override;

 private:
  struct Close {
    void operator()(DIR* stream) const { (void)::closedir(stream); }
  };
  using Stream = std::unique_ptr<DIR, Close>;

  MountedDirectory(Connection& connection, Stream stream)
      : Directory(connection), stream_(std::move(stream)) {}

  const Stream stream_;
};

}  // namespace pnfsrdma::library::mounted

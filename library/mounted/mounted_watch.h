// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "library/mounted/mount_connection.h"
#include "library/watch.h"
#include "shared/base/owned.h"

namespace pnfsrdma::library::mounted {

// Why the mount refused to watch or to signal: it tells an errno only. `what`: for one that says enough itself.
std::string_view why_no_events(int error, std::string_view what);

// A watch of the mount's, which sends what it is told to a socket of ours.
class MountedWatch final : public Watch {
 public:
  // `descriptor`: of the file.
  static Result<std::unique_ptr<MountedWatch>> make(OpenFile& file, MountConnection& connection,
                                                    int descriptor, const pnfsrdma_range& range);

  int fd() const override { return socket_.get(); }

 private:
  MountedWatch(OpenFile& file, FileDescriptor socket, const pnfsrdma_range& range)
      : Watch(file), socket_(std::move(socket)), range_(range) {}

  Result<std::optional<pnfsrdma_event>> take() override;

  const FileDescriptor socket_;
  const pnfsrdma_range range_;
};

}  // namespace pnfsrdma::library::mounted

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::fuse_client {

// Going to the background without lying about it: the process that was started waits until the one that stays
// behind says that the mount is there, and ends with its exit code.
class Readiness {
 public:
  // Forks, before any thread exists. In the parent this does not return: it waits and exits. In the
  // foreground nothing happens.
  Result<> go_to_background();
  // The mount works: the parent exits with 0; this is a session of its own; standard input, output and error
  // are closed.
  void report();

 private:
  FileDescriptor to_parent_;
};

}  // namespace pnfsrdma::fuse_client

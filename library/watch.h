// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "library/open_file.h"
#include "library/pnfsrdma.h"
#include "shared/base/result.h"

namespace pnfsrdma::library {

// What pnfsrdma_watch_create() makes: events of a range of a file that is open as long. Thread-safe.
class Watch {
 public:
  virtual ~Watch() { --file_.in_flight; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  OpenFile& file() const { return file_; }
  // Readable while there is an event.
  virtual int fd() const = 0;
  // Waits; false: none came in time. Errors: EINTR; EIO (the mount is gone).
  Result<bool> next(pnfsrdma_event& event, int timeout_ms);

 protected:
  explicit Watch(OpenFile& file) : file_(file) { ++file_.in_flight; }

 private:
  // Does not wait.
  virtual Result<std::optional<pnfsrdma_event>> take() = 0;

  OpenFile& file_;
};

}  // namespace pnfsrdma::library

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/console/json.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"

namespace pnfsrdma::console {

// Who changed what: JSON lines in a file that only grows, on the medium before the change is answered. At
// 8 MiB it becomes audit.log.1, and so on to .4. Thread-safe.
class AuditLog {
 public:
  // EACCES, ENOSPC and what else the file system gives. A last line cut off by a crash is left behind.
  static Result<std::unique_ptr<AuditLog>> open(const std::string& directory, size_t bytes_max = 8 << 20);

  // Gives it the next sequence number, writes and syncs.
  Result<uint64_t> add(Json entry);
  // At most `limit` with a smaller sequence than `before` (0: any), newest first.
  Result<std::vector<Json>> newest(uint64_t before, size_t limit);

 private:
  AuditLog(std::string directory, size_t bytes_max)
      : directory_(std::move(directory)), bytes_max_(bytes_max) {}
  std::string path(int age) const;
  Result<> open_file();
  Result<> rotate();

  static constexpr int kAges = 5;
  const std::string directory_;
  const size_t bytes_max_;
  Mutex mutex_;
  FileDescriptor file_;
  size_t size_ = 0;
  uint64_t next_ = 1;
};

}  // namespace pnfsrdma::console

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "library/session/file.h"
#include "shared/base/sync.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::library::session {

// The files that a connection has open, by handle: two opens of one file share its data path, so they see each
// other's writes at once. Thread-safe. Session and data path must outlive it.
class FileTable {
 public:
  FileTable(initiator::Session& session, initiator::DataPath& data_path)
      : session_(session), data_path_(data_path) {}

  // Behind an OPEN that was granted when the file had `size`. Waits while its last close settles the data.
  std::shared_ptr<File> join(const nfs4::FileHandle& handle, const std::shared_ptr<Open>& open,
                             uint64_t size);
  // The last one settles the data; then the CLOSE.
  void leave(const std::shared_ptr<File>& file, const Open& open);

  // Asks the server for the file's size, once.
  Result<> ask_size(File& file, const initiator::Credential& who);

  std::vector<std::shared_ptr<File>> all() const;
  bool empty() const;

 private:
  struct Entry {
    std::shared_ptr<File> file;
    bool settling = false;  // its last close is under way
  };

  initiator::Session& session_;
  initiator::DataPath& data_path_;
  mutable Mutex mutex_;
  Condition settled_;
  std::map<nfs4::FileHandle, Entry> files_;
};

}  // namespace pnfsrdma::library::session

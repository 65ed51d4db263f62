// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "shared/base/result.h"

namespace pnfsrdma::mds {

// Who gives a copy of its store: a CopyServer.
struct CopySource {
  std::string url;  // "https://host:port"
  // PEM files.
  std::string authority;
  std::string certificate;
  std::string key;
};

// What becomes of the store that a copy replaces.
enum class OldStore { kKept, kRemoved };

// Puts a copy from there in the place of the metadata store `path`, which nobody has open: all of it or nothing, after
// a crash, too. What was there is kept beside it, as ".replaced", or ".replaced-2" and so on where that is taken, and
// is never removed here. After a crash in between, what has that name is the copy, and the store is as it was. Where
// the two cannot be exchanged (EINVAL: the file system has no RENAME_EXCHANGE), the copy is removed. Blocks.
// ECANCELED: `stopping`, seen at once, but for the time that connecting takes: 6 s. EBUSY: another server is given one.
// EIO: no answer, or what the network gives; EPROTO and EBADMSG as of CopyReader; what the disk gives.
Result<> begin_with_copy(const CopySource& source, const std::string& path, OldStore old,
                         const std::atomic<bool>& stopping);

}  // namespace pnfsrdma::mds

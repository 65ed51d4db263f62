// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "shared/base/bytes.h"

namespace pnfsrdma::fuse_client {

// statx(2) for the time of birth (stat -c %w, ls --time=birth): FUSE_STATX of Linux 6.6, which libfuse 3.14 has not.
// It begins as FUSE_GETATTR does, so it is served as one, and the answer is put into its form on the way out. The
// request that a thread serves; lives as long as it is served.
class BirthQuestion {
 public:
  // Makes a FUSE_GETATTR of a FUSE_STATX, in place; leaves all else as it is.
  explicit BirthQuestion(std::span<std::byte> message);
  ~BirthQuestion();
  BirthQuestion(const BirthQuestion&) = delete;
  BirthQuestion& operator=(const BirthQuestion&) = delete;

  // Of this thread's request. nullptr: it asks for no birth.
  static BirthQuestion* current();

  // Known before the answer is sent; else it says of none.
  void answer(std::optional<timespec> birth) { birth_ = birth; }
  // The answer to the FUSE_GETATTR, as libfuse hands it to writev(2), as one to FUSE_STATX: header and body. nullopt:
  // it is none, or an error.
  std::optional<Bytes> answer_from(std::span<const iovec> answer) const;

 private:
  uint64_t unique_ = 0;
  std::optional<timespec> birth_;
};

}  // namespace pnfsrdma::fuse_client

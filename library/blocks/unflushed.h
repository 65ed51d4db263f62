// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/initiator/brick/device.h"
#include "shared/initiator/file/range_set.h"

namespace pnfsrdma::library::blocks {

// What was written to a mapping and is not known to be durable. The brick's verifier changes whenever its
// memory may have lost that. Thread-safe.
class Unflushed {
 public:
  using Verifier = initiator::BrickVerifier;

  void wrote(uint64_t offset, uint64_t length, const Verifier& verifier);
  // It is durable, whatever was written there before.
  void wrote_durably(uint64_t offset, uint64_t length);

  // What a flush of a range has to answer for.
  struct Taken {
    std::vector<initiator::FileRange> ranges;
    Verifier verifier{};
    bool lost = false;
  };
  // Before the flush is posted.
  Taken take(uint64_t offset, uint64_t length);
  // It was done under this verifier. EIO, once: something was lost before.
  static Result<> settle(const Taken& taken, const Verifier& verifier);
  // It was not done.
  void put_back(const Taken& taken);

 private:
  void add(uint64_t offset, uint64_t length, const Verifier& verifier);

  Mutex mutex_;
  initiator::RangeSet ranges_;
  Verifier verifier_{};  // under which all of it was written
  bool lost_ = false;    // nobody was told yet
};

}  // namespace pnfsrdma::library::blocks

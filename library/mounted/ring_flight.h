// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "library/flight.h"
#include "library/mounted/mounted_file.h"
#include "library/mounted/ring.h"

namespace pnfsrdma::library::mounted {

// A move through the ring. What the mount hands back is done by the descriptor.
class RingFlight final : public Flight, private Ring::Waiter {
 public:
  RingFlight(MountConnection& connection, Ring& ring, FlightListener& listener)
      : Waiter(ring), connection_(connection), listener_(listener) {}

  bool start(OpenFile& file, const Move& move, Together* together) override;
  std::optional<Result<size_t>> try_finish() override;
  Result<size_t> finish() override;

 private:
  void completed(int64_t result) override;

  MountConnection& connection_;
  FlightListener& listener_;
  MountedFile* file_ = nullptr;
  Move move_;
  MountConnection::Memory::Use memory_;
  int64_t result_ = 0;
};

}  // namespace pnfsrdma::library::mounted

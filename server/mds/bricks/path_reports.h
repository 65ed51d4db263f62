// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "server/mds/meta/brick_records.h"
#include "shared/base/clock.h"
#include "shared/nfs4/status.h"

namespace pnfsrdma::mds {

// Which clients say that they cannot reach which bricks (LAYOUTERROR): nobody else sees that. A client repeats its
// report every 30 s while that is so, therefore one that is older than `kValid` is void. A value, no I/O.
class PathReports {
 public:
  static constexpr Milliseconds kValid{90'000};
  // More are not remembered: a report is a hint, and a client may have thousands.
  static constexpr size_t kReportsMax = 4096;

  struct Report {
    nfs4::Status error = nfs4::Status::kOk;
    SteadyTime first;  // of this outage
    SteadyTime last;
  };
  struct Broken {
    uint64_t client = 0;
    BrickUuid brick{};
    Report report;
  };

  // True: it is news (not said before, or not lately).
  bool note(uint64_t client, const BrickUuid& brick, nfs4::Status error, SteadyTime now);
  // Those in force, by client.
  std::vector<Broken> current(SteadyTime now) const;

 private:
  void forget_void(SteadyTime now);

  std::map<std::pair<uint64_t, BrickUuid>, Report> reports_;
};

}  // namespace pnfsrdma::mds

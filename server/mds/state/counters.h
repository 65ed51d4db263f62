// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "server/mds/state/activity.h"
#include "server/mds/state/busy_files.h"
#include "shared/base/clock.h"
#include "shared/base/latency_histogram.h"

namespace pnfsrdma::mds {

// What the server has done since it started. Control loop only; each count is one addition.
struct Counters {
  static constexpr size_t kOperationsMax = 128;

  std::array<uint64_t, kOperationsMax> operations{};     // by operation number, started
  std::array<uint64_t, kOperationsMax> errors{};         // by operation number, answered with an error
  std::array<LatencyHistogram, kOperationsMax> latency;  // by operation number, waits included
  uint64_t compounds = 0;
  uint64_t illegal_operations = 0;
  uint64_t replays = 0;
  uint64_t bytes_read = 0;     // through the server
  uint64_t bytes_written = 0;  // through the server
  uint64_t layouts_granted = 0;
  uint64_t layouts_recalled = 0;
  uint64_t layouts_revoked = 0;
  ReportedIo reported;
  uint64_t delegations_granted = 0;
  uint64_t delegations_recalled = 0;
  uint64_t delegations_revoked = 0;
  uint64_t clients_expired = 0;
  // Calls an export did not serve because of the port they came from, and the last of them.
  struct PortRefusals {
    uint64_t calls = 0;
    SteadyTime last;
    std::string host;
  };
  std::map<uint16_t, PortRefusals> port_refusals;  // by export
  std::map<uint16_t, Activity> by_export;
  BusyFiles busy_files;
};

// One line of JSON: {"compounds":…,"read_bytes":…,"operations":{"GETATTR":…},"errors":{…}}; operations never
// called are called are left out.
std::string to_json(const Counters& counters);

}  // namespace pnfsrdma::mds

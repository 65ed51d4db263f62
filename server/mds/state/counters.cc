// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/counters.h"

#include <fmt/format.h>

#include <iterator>

#include "shared/nfs4/operation_table.h"

namespace pnfsrdma::mds {

namespace {

// {"OPEN":3,…} of what is not zero.
std::string by_operation(const std::array<uint64_t, Counters::kOperationsMax>& counts) {
  std::string text;
  for (const nfs4::OperationRow& row : nfs4::kOperationTable) {
    if (row.number >= counts.size() || counts[row.number] == 0) continue;
    fmt::format_to(std::back_inserter(text), "{}\"{}\":{}", text.empty() ? "" : ",", row.name,
                   counts[row.number]);
  }
  return "{" + text + "}";
}

uint64_t total(const std::map<uint16_t, Counters::PortRefusals>& refusals) {
  uint64_t calls = 0;
  for (const auto& [id, refused] : refusals) calls += refused.calls;
  return calls;
}

}  // namespace

std::string to_json(const Counters& counters) {
  return fmt::format(
      R"({{"compounds":{},"replays":{},"illegal_operations":{},"read_bytes":{},"write_bytes":{},)"
      R"("layouts_granted":{},"layouts_recalled":{},"layouts_revoked":{},)"
      R"("reported_read_bytes":{},"reported_write_bytes":{},)"
      R"("delegations_granted":{},"delegations_recalled":{},"delegations_revoked":{},"clients_expired":{},)"
      R"("port_refusals":{},"operations":{},"errors":{}}})",
      counters.compounds, counters.replays, counters.illegal_operations, counters.bytes_read,
      counters.bytes_written, counters.layouts_granted, counters.layouts_recalled, counters.layouts_revoked,
      counters.reported.read_bytes, counters.reported.write_bytes, counters.delegations_granted,
      counters.delegations_recalled, counters.delegations_revoked, counters.clients_expired,
      total(counters.port_refusals), by_operation(counters.operations), by_operation(counters.errors));
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "cli/stat/rates.h"

#include <fmt/format.h>

#include "cli/output/json_member.h"
#include "cli/output/table.h"
#include "cli/output/units.h"

namespace pnfsrdma::cli {
namespace {

using nlohmann::json;

double growth(const json& earlier, const json& later, const std::string& pointer) {
  const uint64_t before = number_at(earlier, pointer.c_str());
  const uint64_t after = number_at(later, pointer.c_str());
  return static_cast<double>(after >= before ? after - before : after);
}

}  // namespace

Rates rates_between(const MountReading& earlier, const MountReading& later,
                    std::chrono::duration<double> interval) {
  Rates rates = {Rate{"read"}, Rate{"write"}, Rate{"sync"}, Rate{"mds_call"}};
  const double seconds = interval.count();
  if (seconds <= 0) return rates;
  for (Rate& rate : rates) {
    const std::string latency = "/latency/" + rate.operation;
    const double count = growth(earlier.status, later.status, latency + "/count");
    rate.operations_per_second = count / seconds;
    if (count > 0) {
      rate.average_seconds = growth(earlier.status, later.status, latency + "/nanoseconds") / count / 1e9;
    }
    if (rate.operation != "read" && rate.operation != "write") continue;
    const auto bytes = [&](const std::string& path) {
      return growth(earlier.statistics, later.statistics, "/" + path + "_" + rate.operation + "_bytes");
    };
    const double by_rdma = bytes("rdma");
    const double all = by_rdma + bytes("mds");
    rate.bytes_per_second = all / seconds;
    if (count > 0) rate.bytes_per_operation = all / count;
    if (all > 0) rate.by_rdma = by_rdma / all;
  }
  return rates;
}

std::string rates_report(const Rates& rates, const Terminal& terminal) {
  using Align = Column::Align;
  Table table({{""},
               {"OPS/S", Align::kRight},
               {"BYTES/S", Align::kRight},
               {"BYTES/OP", Align::kRight},
               {"AVERAGE", Align::kRight},
               {"BY RDMA", Align::kRight}});
  for (const Rate& rate : rates) {
    const bool moves_data = rate.operation == "read" || rate.operation == "write";
    const bool any = rate.operations_per_second > 0;
    table.add({rate.operation, count_text(rate.operations_per_second),
               moves_data ? bytes_text(rate.bytes_per_second) : "",
               moves_data ? bytes_text(rate.bytes_per_operation) : "",
               any ? latency_text(std::chrono::duration<double>(rate.average_seconds)) : "-",
               moves_data && rate.bytes_per_second > 0 ? fmt::format("{:.0f} %", rate.by_rdma * 100) : ""});
  }
  return table.to_string(terminal);
}

json rates_json(const Rates& rates) {
  json all = json::object();
  for (const Rate& rate : rates) {
    all[rate.operation] = {{"operations_per_second", rate.operations_per_second},
                           {"bytes_per_second", rate.bytes_per_second},
                           {"bytes_per_operation", rate.bytes_per_operation},
                           {"average_seconds", rate.average_seconds},
                           {"by_rdma", rate.by_rdma}};
  }
  return all;
}

}  // namespace pnfsrdma::cli

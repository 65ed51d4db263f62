// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/api/api_client.h"
#include "cli/doctor/finding.h"
#include "cli/doctor/host.h"
#include "cli/output/output.h"

namespace pnfsrdma::cli {

struct DoctorOptions {
  std::string server;    // "host" or "host:port"; empty: none is looked at
  ApiClient* console{};  // a server to ask; null: none
};

// Every check, in the order of the report.
Findings examine(const Host& host, const DoctorOptions& options);
std::string doctor_report(const Findings& findings, const Terminal& terminal);
nlohmann::json doctor_json(const Findings& findings);

// `pnfsrdma doctor`: kFailed when there is a problem.
ExitCode run_doctor(const Host& host, const DoctorOptions& options, Output& output);

}  // namespace pnfsrdma::cli

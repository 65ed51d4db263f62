// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace pnfsrdma::cli {

// kWarning: it works, but not as it could. kProblem: something that is there does not work.
enum class Verdict { kOk, kWarning, kProblem };
const char* to_string(Verdict verdict);

// One thing the doctor looked at.
struct Finding {
  std::string subject;  // "memlock", "port 2049", "rdma rxe0"
  Verdict verdict = Verdict::kOk;
  std::string what;  // what is the case, and what follows
  std::string fix;   // a command or a sentence; empty with kOk
};
using Findings = std::vector<Finding>;

}  // namespace pnfsrdma::cli

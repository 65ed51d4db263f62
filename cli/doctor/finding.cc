// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/finding.h"

namespace pnfsrdma::cli {

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kProblem:
      return "problem";
  }
  return "?";
}

}  // namespace pnfsrdma::cli

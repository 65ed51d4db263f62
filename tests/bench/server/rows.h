// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "tests/bench/server/worker.h"

namespace pnfsrdma::bench {

// What is measured: one operation is all calls of `run`, from the first's sending to the last's answer.
struct Row {
  std::string_view name;
  std::string_view what;  // the COMPOUNDs of one operation, without SEQUENCE
  Calls prepare;          // each worker once, before
  Calls run;
  Calls finish;          // each worker once, after
  bool layouts = false;  // only where there are layouts of our type
};

const std::vector<Row>& all_rows();

}  // namespace pnfsrdma::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "tests/bench/brick/orders.h"

namespace pnfsrdma::bench {

// The attacker's process, seen from outside: this program once more, with a pipe each way. Killed and waited
// for when it is destroyed.
class WatchedProcess {
 public:
  static Result<std::unique_ptr<WatchedProcess>> start(const std::vector<std::string>& arguments);
  ~WatchedProcess();
  WatchedProcess(const WatchedProcess&) = delete;
  WatchedProcess& operator=(const WatchedProcess&) = delete;

  void order(const std::string& line);
  // The next report that begins with `word`; others are dropped. ETIMEDOUT, ECHILD (it has ended).
  Result<std::vector<std::string>> expect(const std::string& word, int milliseconds);
  // The next report, whatever it says.
  Result<std::vector<std::string>> report(int milliseconds);
  // SIGSTOP; returns when all of its threads stand still.
  Result<> freeze();
  void thaw();

 private:
  WatchedProcess(pid_t pid, FileDescriptor in, FileDescriptor out);

  const pid_t pid_;
  FileDescriptor in_, out_;
  OrderReader reports_;
};

}  // namespace pnfsrdma::bench

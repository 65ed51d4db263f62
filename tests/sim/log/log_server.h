// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/mds/log/log_member.h"
#include "shared/base/random.h"
#include "tests/doubles/metadata/memory_store.h"
#include "tests/sim/log/log_oracle.h"
#include "tests/sim/log/model_etcd.h"

namespace pnfsrdma::sim {

// A metadata server but for its metadata: what its main() does with the log, and clients that write and read one
// register. Its disk stays over its ends.
class LogServer {
 public:
  LogServer(size_t index, ModelEtcd& etcd, LogOracle& oracle, uint64_t seed);

  void start();
  bool runs() const { return process_ != nullptr; }
  // SIGKILL; `host`: of the host, what the disk had not synced may be lost with it.
  void kill(bool host);
  // SIGTERM.
  void stop();
  void pause(Milliseconds time);
  // No client asks for more.
  void quiet() { quiet_ = true; }
  void loud() { quiet_ = false; }
  // How often it has begun to serve.
  uint64_t terms() const { return terms_; }

  // By its own clock it leads, and answers. From outside, at once.
  bool leads();
  bool serves();
  mds::MemoryStore::Content content() const;

 private:
  struct Process;
  void run(Process& process);
  void serve(Process& process);
  void ask(Process& process);
  void keep(const mds::MemoryStore& disk);

  const size_t index_;
  ModelEtcd& etcd_;
  LogOracle& oracle_;
  Dice dice_;
  ServerClock loop_clock_;
  ServerClock lead_clock_;
  uint64_t host_ = 0;
  uint64_t boots_ = 1;
  uint64_t terms_ = 0;
  bool quiet_ = false;
  Process* process_ = nullptr;  // never taken apart: its fibers may die anywhere
  mds::MemoryStore::Content disk_;
};

}  // namespace pnfsrdma::sim

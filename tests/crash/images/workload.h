// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/crash/images/client.h"

namespace pnfsrdma::crash {

// What the client does: random steps over a few names, or a short list of all kinds of step.
class Workload {
 public:
  Workload(Client& client, const Journal& journal, Random& random)
      : client_(client), journal_(journal), random_(random) {}

  void random_step();
  // A fixed run of kSteps, to be cut at each of its events.
  static constexpr int kSteps = 25;
  void fixed_step(int number);

 private:
  uint64_t below(uint64_t bound) { return random_.next_u64() % bound; }
  std::string any_name() { return std::string(1, static_cast<char>('a' + below(5))); }
  Flush any_flush() { return static_cast<Flush>(below(3)); }
  void write(const std::string& name);
  void write_to(const std::string& name, uint64_t grain, uint64_t grains, Flush flush);
  void truncate(const std::string& name, uint64_t size);

  Client& client_;
  const Journal& journal_;
  Random& random_;
};

}  // namespace pnfsrdma::crash

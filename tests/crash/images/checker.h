// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/crash/images/client.h"

namespace pnfsrdma::crash {

// Looks at a recovered system from outside, as its client, and at its media from inside, and compares with
// the journal. What it has seen the journal then takes for certain, so that a run can go on behind it.
class Checker {
 public:
  Checker(System& system, Client& client, Journal& journal)
      : system_(system), client_(client), journal_(journal) {}

  // Problems, one sentence each.
  std::vector<std::string> check();

 private:
  void check_names();
  void check_file(const std::string& name, uint16_t serial);
  uint64_t check_size(const std::string& name, const OpenFile& file);
  Bytes check_bytes(const std::string& name, OpenFile& file, uint64_t size);
  void learn(uint16_t serial, uint64_t size, const Bytes& content);
  // Grows the file: what appears must be zeros.
  void check_behind_end(const std::string& name, OpenFile& file);
  void check_metadata();
  void check_blocks();
  void note(std::string problem);

  System& system_;
  Client& client_;
  Journal& journal_;
  std::vector<std::string> problems_;
};

}  // namespace pnfsrdma::crash

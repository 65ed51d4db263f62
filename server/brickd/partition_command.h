// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/brickd/config.h"
#include "shared/base/result.h"
#include "shared/pmem/mapping.h"

namespace CLI {
class App;
}

namespace pnfsrdma::brick {

// pnfsrdma-brickd partition VERB: a device or file that is split into pools, each of an owner of its own. Tells what it
// does on stdout.
class PartitionCommand {
 public:
  // Adds its options to the program's.
  explicit PartitionCommand(CLI::App& app);

  // One of them was asked for.
  bool asked() const;
  Result<> run();

 private:
  Result<> format();
  Result<> create();
  Result<> list();
  Result<> remove();
  Result<> renew_key();
  Result<> tell_key(const std::string& text) const;
  Result<bool> confirmed(const std::string& what) const;

  CLI::App* noun_ = nullptr;
  std::string path_, name_, size_, quota_, key_file_;
  bool force_ = false, json_ = false, yes_ = false, for_mds_ = false;
};

// The pool that the configuration names: all of the file or device, or a partition of it.
Result<std::unique_ptr<pmem::Mapping>> open_pool_memory(const Config& config);

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/host_files.h"
#include "cli/output/failure.h"
#include "cli/output/output.h"

// What a command does on this host, step by step, and tells.
namespace pnfsrdma::cli {

class HostSteps {
 public:
  // `output` outlives this. `directory`: for what is only tried.
  HostSteps(bool dry_run, std::string directory, Output& output)
      : dry_run_(dry_run), directory_(std::move(directory)), output_(output) {}

  bool dry_run() const { return dry_run_; }
  void did(const std::string& what);
  void next(const std::string& what);
  // Behind the others: with --json what was done and what comes next.
  void report() const;

  // Unless it is there already. `shown`: of its content, by a dry run.
  Outcome<> write(const HostFile& file, const char* what, const std::string& shown = {});
  Outcome<> write_secret(const std::string& path, const std::string& content, const std::string& user);
  // The one that is there, or a new one.
  Outcome<std::string> private_key(const std::string& path, const std::string& user);
  // The daemon says whether it would take this in the place of its configuration `path`.
  Outcome<> try_config(const std::string& daemon, const std::string& path, const std::string& changed);

 private:
  const bool dry_run_;
  const std::string directory_;
  Output& output_;
  std::vector<std::string> done_;
  std::vector<std::string> next_;
};

}  // namespace pnfsrdma::cli

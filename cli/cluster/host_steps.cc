// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/host_steps.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/cluster/certificates.h"
#include "cli/output/program.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

void HostSteps::did(const std::string& what) {
  done_.push_back(what);
  if (!output_.json) output_.line((dry_run_ ? "would: " : "") + what);
}

void HostSteps::next(const std::string& what) {
  next_.push_back(what);
  if (!output_.json) output_.line("next: " + what);
}

void HostSteps::report() const {
  if (!output_.json && done_.empty() && next_.empty()) output_.line("nothing is left to do");
  if (output_.json) output_.value({{"dry_run", dry_run_}, {"done", done_}, {"next", next_}});
}

Outcome<> HostSteps::write(const HostFile& file, const char* what, const std::string& shown) {
  TRY_ASSIGN(const auto before, read_host_file(file.path));
  if (before == file.content) return {};
  std::string copy;
  if (!dry_run_) {
    TRY_ASSIGN(copy, write_host_file(file));
  }
  did(fmt::format("write {} ({}){}", file.path, what, copy.empty() ? "" : "; as it was: " + copy));
  if (dry_run_ && !output_.json) output_.text(shown);
  return {};
}

Outcome<> HostSteps::write_secret(const std::string& path, const std::string& content,
                                  const std::string& user) {
  return write({.path = path, .content = content, .mode = 0600, .user = user}, "a private key");
}

Outcome<std::string> HostSteps::private_key(const std::string& path, const std::string& user) {
  TRY_ASSIGN(const auto known, read_host_file(path));
  if (known) return *known;
  TRY_ASSIGN(std::string key, make_private_key());
  TRY(write_secret(path, key, user));
  return key;
}

Outcome<> HostSteps::try_config(const std::string& daemon, const std::string& path,
                                const std::string& changed) {
  if (dry_run_) return {};
  const std::string tried = directory_ + "/" + std::string(std::filesystem::path(path).filename()) + ".tried";
  TRY(write_host_file({.path = tried, .content = changed, .mode = 0600}));
  if (const auto taken = output_of({daemon, "--config", tried, "--print-config"}); !taken)
    return refuse(ExitCode::kFailed, daemon + " would not take " + tried, taken.error().title,
                  "mend " + path + "; the same command goes on");
  ::unlink(tried.c_str());
  return {};
}

}  // namespace pnfsrdma::cli

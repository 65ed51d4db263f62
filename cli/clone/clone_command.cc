// SPDX-License-Identifier: Apache-2.0
#include "cli/clone/clone_command.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/clone/clone_memory.h"
#include "cli/output/units.h"
#include "shared/base/owned.h"

namespace pnfsrdma::cli {
namespace {

ExitCode code_of(int error) {
  if (error == ENOENT) return ExitCode::kNotFound;
  if (error == EACCES || error == EPERM) return ExitCode::kNotPermitted;
  return error == EEXIST || error == EAGAIN ? ExitCode::kConflict : ExitCode::kFailed;
}

std::unexpected<Failure> refuse_path(const std::string& path, int error, std::string fix = {}) {
  return refuse(code_of(error), path + ": " + std::strerror(error), {}, std::move(fix));
}

// The file that is being made, for whoever interrupts us; null: none.
std::atomic<const char*> unfinished = nullptr;

void remove_unfinished(int number) {
  if (const char* const path = unfinished.load()) (void)unlink(path);
  _exit(128 + number);
}

// The file that is being made: it has a name of its own until it is whole, and goes if that never comes.
class Unfinished {
 public:
  explicit Unfinished(const std::filesystem::path& target)
      : path_(target.parent_path() / ("." + target.filename().string().substr(0, 200) + ".clone-XXXXXX")),
        file_(mkstemp(path_.data())) {
    if (!file_) error_ = errno;
    if (!file_) return;
    unfinished = path_.c_str();
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      if (std::signal(number, remove_unfinished) == SIG_IGN) (void)std::signal(number, SIG_IGN);
    }
  }
  ~Unfinished() {
    if (file_) (void)unlink(path_.c_str());
    unfinished = nullptr;
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  int error() const { return error_; }
  int number() const { return file_.get(); }
  // 0 or an errno.
  int become(const std::string& target, bool replaces) {
    if (replaces) return rename(path_.c_str(), target.c_str()) == 0 ? 0 : errno;
    // Never over what has come meanwhile; every server knows how.
    return link(path_.c_str(), target.c_str()) == 0 ? 0 : errno;
  }

 private:
  std::string path_;
  FileDescriptor file_;
  int error_ = 0;
};

std::unexpected<Failure> refuse_clone(const CloneOptions& options, const CloneRefusal& refusal) {
  const std::string& path = refusal.of_source ? options.source : options.target;
  const std::string copy = "copy it: cp " + options.source + " " + options.target;
  switch (refusal.error) {
    case ENOTTY:
      return refuse(ExitCode::kFailed, path + ": not on a mount that can clone files", {}, copy);
    case EPERM:
      return refuse(ExitCode::kFailed,
                    options.source + " and " + options.target + " are not on the same mount", {}, copy);
    case EOPNOTSUPP:
      return refuse(ExitCode::kFailed, path + ": its mount or its server cannot clone files",
                    "A mount with -o writeback cannot.", copy);
    case EXDEV:
      return refuse(ExitCode::kFailed, options.source + " is on a brick that is being drained", {}, copy);
    case EFBIG:
      return refuse(ExitCode::kFailed, options.source + " is in too many pieces to be cloned at once", {},
                    copy);
    default:
      return refuse_path(path, refusal.error);
  }
}

// Nothing is replaced unasked, nor what is no file, nor the source.
Outcome<> check_target(const CloneOptions& options, const std::filesystem::path& target,
                       const struct stat& source) {
  struct stat present{};
  if (lstat(target.c_str(), &present) != 0) {
    if (errno == ENOENT) return {};
    return refuse_path(target, errno);
  }
  if (present.st_dev == source.st_dev && present.st_ino == source.st_ino)
    return refuse(ExitCode::kUsage, options.source + " and " + target.string() + " are the same file");
  if (!S_ISREG(present.st_mode))
    return refuse(ExitCode::kConflict, target.string() + " is no regular file: it is not replaced");
  return options.force ? Outcome<>() : refuse_path(target, EEXIST, "replace it: --force");
}

}  // namespace

Outcome<> run_clone(const CloneOptions& options, Output& output) {
  const FileDescriptor source(open(options.source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source) return refuse_path(options.source, errno);
  struct stat status{};
  if (fstat(source.get(), &status) != 0) return refuse_path(options.source, errno);
  if (!S_ISREG(status.st_mode)) return refuse(ExitCode::kUsage, options.source + " is no regular file");
  std::error_code ignored;
  std::filesystem::path target(options.target);
  if (std::filesystem::is_directory(target, ignored))
    target /= std::filesystem::path(options.source).filename();
  if (const auto refused = check_target(options, target, status); !refused) return refused;
  Unfinished made(target);
  if (made.error() != 0) return refuse_path(target, made.error());
  if (const auto refusal = clone_memory(source.get(), made.number())) return refuse_clone(options, *refusal);
  const mode_t mask = umask(0);
  (void)umask(mask);
  if (fchmod(made.number(), status.st_mode & 0777 & ~mask) != 0) return refuse_path(target, errno);
  if (const int error = made.become(target, options.force); error != 0) return refuse_path(target, error);
  if (output.json) {
    output.value({{"source", options.source}, {"target", target.string()}, {"bytes", status.st_size}});
  } else {
    output.line(fmt::format("{}: a clone of {}, {}", target.string(), options.source,
                            bytes_text(static_cast<double>(status.st_size))));
  }
  return {};
}

}  // namespace pnfsrdma::cli

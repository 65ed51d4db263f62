// SPDX-License-Identifier: Apache-2.0
#include "cli/output/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "shared/base/owned.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {
namespace {

constexpr size_t kAnswerBytesMax = size_t{1} << 20;

std::string place_of_daemon(const char* name) {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& folder : {here, here.parent_path() / "sbin"}) {
    const std::string program = folder / name;
    if (!error && ::access(program.c_str(), X_OK) == 0) return program;
  }
  return name;
}

}  // namespace

std::string daemon_program() {
  return place_of_daemon("pnfsrdma-mdsd");
}

std::string brick_program() {
  return place_of_daemon("pnfsrdma-brickd");
}

Outcome<std::string> output_of(const std::vector<std::string>& words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    return refuse(ExitCode::kFailed, "no pipe to " + words[0], Error::from_errno("pipe2").to_string());
  const FileDescriptor reads(ends[0]);
  FileDescriptor writes(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writes.get(), STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  writes = {};
  if (failed != 0)
    return refuse(ExitCode::kFailed, words[0] + " cannot be started",
                  Error(failed, "posix_spawnp").to_string());
  std::string text;
  std::array<char, 4096> part;
  for (;;) {
    const ssize_t came = ::read(reads.get(), part.data(), part.size());
    if (came < 0 && errno == EINTR) continue;
    if (came <= 0 || text.size() > kAnswerBytesMax) break;
    text.append(part.data(), static_cast<size_t>(came));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return refuse(ExitCode::kFailed, words[0] + " has failed");
  return text;
}

}  // namespace pnfsrdma::cli

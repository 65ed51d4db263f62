// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/brick/watched_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace pnfsrdma::bench {
namespace {

// In the child between fork and exec: nothing but system calls.
[[noreturn]] void become_attacker(int orders, int reports, char* const* arguments) {
  ::dup2(orders, STDIN_FILENO);
  ::dup2(reports, STDOUT_FILENO);
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

}  // namespace

WatchedProcess::WatchedProcess(pid_t pid, FileDescriptor in, FileDescriptor out)
    : pid_(pid), in_(std::move(in)), out_(std::move(out)), reports_(out_.get()) {}

Result<std::unique_ptr<WatchedProcess>> WatchedProcess::start(const std::vector<std::string>& arguments) {
  std::vector<char*> words;
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  int orders[2], reports[2];
  if (::pipe2(orders, O_CLOEXEC) != 0) return std::unexpected(Error::from_errno("pipe2"));
  FileDescriptor orders_out(orders[0]), orders_in(orders[1]);
  if (::pipe2(reports, O_CLOEXEC) != 0) return std::unexpected(Error::from_errno("pipe2"));
  FileDescriptor reports_out(reports[0]), reports_in(reports[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return std::unexpected(Error::from_errno("fork"));
  if (pid == 0) become_attacker(orders_out.get(), reports_in.get(), words.data());
  return std::unique_ptr<WatchedProcess>(
      new WatchedProcess(pid, std::move(orders_in), std::move(reports_out)));
}

WatchedProcess::~WatchedProcess() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void WatchedProcess::order(const std::string& line) {
  say(in_.get(), line);
}

Result<std::vector<std::string>> WatchedProcess::report(int milliseconds) {
  auto words = reports_.next(milliseconds);
  if (!words.empty()) return words;
  if (reports_.ended()) return fail(ECHILD, "the attacker has ended");
  return fail(ETIMEDOUT, "the attacker says nothing");
}

Result<std::vector<std::string>> WatchedProcess::expect(const std::string& word, int milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    auto words = report(static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (!words) return std::unexpected(words.error().in("waiting for \"" + word + "\""));
    if (words->front() == word) return words;
  }
}

Result<> WatchedProcess::freeze() {
  if (::kill(pid_, SIGSTOP) != 0) return std::unexpected(Error::from_errno("SIGSTOP"));
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) != pid_ || !WIFSTOPPED(status)) {
    return fail(ECHILD, "the attacker ended when it was to stop");
  }
  return {};
}

void WatchedProcess::thaw() {
  ::kill(pid_, SIGCONT);
}

}  // namespace pnfsrdma::bench

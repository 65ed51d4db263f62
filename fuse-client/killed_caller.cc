// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/killed_caller.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>

#include "shared/base/owned.h"
#include "shared/base/sync.h"

namespace pnfsrdma::fuse_client {
namespace {

constexpr uint64_t kProcessExiting = 0x4;  // PF_EXITING
// Behind the name in /proc/<tid>/stat, counted from 0: proc(5) counts from 1, with two more before.
constexpr size_t kFlagsField = 6;
constexpr size_t kExitCodeField = 49;

std::string read_file(pid_t thread, const char* name) {
  std::array<char, 8192> text;
  const FileDescriptor file(::open(fmt::format("/proc/{}/{}", thread, name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : std::string();
}

uint64_t number(std::string_view text, int base) {
  uint64_t value = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

// The hexadecimal mask behind "\n<name>:\t".
uint64_t signal_mask(std::string_view status, std::string_view name) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  return number(status.substr(at + name.size(), 16), 16);
}

std::string_view field(std::string_view fields, size_t index) {
  for (; index > 0; --index) {
    const size_t space = fields.find(' ');
    if (space == std::string_view::npos) return {};
    fields.remove_prefix(space + 1);
  }
  return fields.substr(0, fields.find(' '));
}

}  // namespace

bool has_fatal_signal(std::string_view status) {
  constexpr uint64_t kKill = uint64_t{1} << (SIGKILL - 1);
  return ((signal_mask(status, "\nSigPnd:\t") | signal_mask(status, "\nShdPnd:\t")) & kKill) != 0;
}

bool dies_of_signal(std::string_view stat) {
  // The name is in parentheses and may hold anything, parentheses too.
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos) return false;
  stat.remove_prefix(name_end + 2);
  // The wait status: the low seven bits are the signal; after exit(2) they are zero.
  return (number(field(stat, kFlagsField), 10) & kProcessExiting) != 0 &&
         (number(field(stat, kExitCodeField), 10) & 0x7f) != 0;
}

bool is_killed(pid_t thread) {
  if (thread == 0) return false;
  return has_fatal_signal(read_file(thread, "status")) || dies_of_signal(read_file(thread, "stat"));
}

bool KilledCaller::requested() {
  if (gone_ || thread_ == 0) return gone_;
  const SteadyTime now = steady_now();
  if (next_look_ == SteadyTime{}) {
    next_look_ = now + kFirstLook;
  } else if (now >= next_look_) {
    next_look_ = now + kDistance;
    gone_ = is_killed(thread_);
  }
  return gone_;
}

}  // namespace pnfsrdma::fuse_client

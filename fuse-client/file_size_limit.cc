// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_size_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "shared/base/owned.h"

namespace pnfsrdma::fuse_client {

uint64_t file_size_limit(pid_t thread) {
  if (thread == 0) return UINT64_MAX;
  rlimit limit{};
  static_assert(RLIM_INFINITY == UINT64_MAX);
  if (::prlimit(thread, RLIMIT_FSIZE, nullptr, &limit) == 0) return limit.rlim_cur;
  const FileDescriptor file(::open(fmt::format("/proc/{}/limits", thread).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return UINT64_MAX;
  std::array<char, 4096> text;
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  return file_size_limit_in({text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))});
}

// A line for each limit: its name, the soft one, the hard one; a number or "unlimited".
uint64_t file_size_limit_in(std::string_view limits) {
  constexpr std::string_view kName = "Max file size";
  const size_t at = limits.find(kName);
  if (at == std::string_view::npos) return UINT64_MAX;
  limits.remove_prefix(at + kName.size());
  limits.remove_prefix(std::min(limits.find_first_not_of(' '), limits.size()));
  uint64_t limit = 0;
  const auto parsed = std::from_chars(limits.data(), limits.data() + limits.size(), limit);
  return parsed.ec == std::errc() ? limit : UINT64_MAX;
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/caller.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include "shared/base/owned.h"

namespace pnfsrdma::fuse_client {
namespace {

// open, read, close: the file fits one read.
std::vector<uint32_t> read_groups(pid_t process) {
  std::array<char, 8192> text;
  const FileDescriptor file(::open(fmt::format("/proc/{}/status", process).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return {};
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return {};
  return parse_groups(std::string_view(text.data(), static_cast<size_t>(size)));
}

}  // namespace

std::vector<uint32_t> parse_groups(std::string_view status) {
  constexpr std::string_view kLine = "\nGroups:";
  const size_t start = status.find(kLine);
  if (start == std::string_view::npos) return {};
  status.remove_prefix(start + kLine.size());
  status = status.substr(0, status.find('\n'));

  std::vector<uint32_t> groups;
  while (groups.size() < initiator::kCredentialGroupsMax) {
    const size_t digit = status.find_first_of("0123456789");
    if (digit == std::string_view::npos) break;
    status.remove_prefix(digit);
    uint32_t group = 0;
    const auto [end, error] = std::from_chars(status.data(), status.data() + status.size(), group);
    if (error != std::errc()) break;
    groups.push_back(group);
    status.remove_prefix(static_cast<size_t>(end - status.data()));
  }
  return groups;
}

initiator::Credential CallerGroups::credential(uid_t user, gid_t group, pid_t process) {
  // Root is let in (or squashed) whatever its groups are.
  if (process == 0 || user == 0) return {user, group, {}};
  const SteadyTime now = clock_.now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(process);
    if (found != entries_.end() && found->second.user == user && found->second.group == group &&
        now - found->second.read_at < kKept) {
      return {user, group, found->second.groups};
    }
  }
  // Outside the lock: /proc may be slow, and two threads that read the same file do no harm.
  std::vector<uint32_t> groups = read_groups(process);
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kEntriesMax) entries_.clear();
  entries_.insert_or_assign(process, Entry{user, group, now, groups});
  return {user, group, std::move(groups)};
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/remount.h"

#include <fmt/format.h>
#include <mntent.h>
#include <sys/mount.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>

#include "fuse-client/mount_options.h"

namespace pnfsrdma::fuse_client {
namespace {

struct Flag {
  std::string_view name;
  unsigned long bit;
  bool set;
};
constexpr std::array kFlags = {Flag{"ro", MS_RDONLY, true},        Flag{"rw", MS_RDONLY, false},
                               Flag{"nosuid", MS_NOSUID, true},    Flag{"suid", MS_NOSUID, false},
                               Flag{"nodev", MS_NODEV, true},      Flag{"dev", MS_NODEV, false},
                               Flag{"noexec", MS_NOEXEC, true},    Flag{"exec", MS_NOEXEC, false},
                               Flag{"sync", MS_SYNCHRONOUS, true}, Flag{"async", MS_SYNCHRONOUS, false},
                               Flag{"dirsync", MS_DIRSYNC, true},  Flag{"noatime", MS_NOATIME, true},
                               Flag{"atime", MS_NOATIME, false},   Flag{"nodiratime", MS_NODIRATIME, true},
                               Flag{"relatime", MS_RELATIME, true}};

const Flag* flag_of(std::string_view name) {
  const auto* found =
      std::find_if(kFlags.begin(), kFlags.end(), [&](const Flag& f) { return f.name == name; });
  return found == kFlags.end() ? nullptr : found;
}

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) parts.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

// What mount(8) reads from /proc/self/mountinfo and hands back.
bool is_told_by_kernel(std::string_view option) {
  constexpr std::array<std::string_view, 8> kTold = {
      "remount", "defaults", "user_id=", "group_id=", "rootmode=", "max_read=", "blksize=", "fd="};
  return std::any_of(kTold.begin(), kTold.end(), [&](std::string_view told) {
    return told.ends_with('=') ? option.starts_with(told) : option == told;
  });
}

// For mount(8) and systemd.
bool is_for_others(std::string_view option) {
  constexpr std::array<std::string_view, 5> kTheirs = {"_netdev", "auto", "noauto", "nofail", "user"};
  return option.starts_with("x-") || std::ranges::find(kTheirs, option) != kTheirs.end();
}

bool has(std::string_view options, std::string_view option) {
  const auto parts = split_at_commas(options);
  return std::ranges::find(parts, option) != parts.end();
}

// Of the newest mount there, which hides others.
std::optional<std::string> options_of_mount(const std::string& mountpoint) {
  const std::unique_ptr<FILE, int (*)(FILE*)> mounts(::setmntent("/proc/self/mounts", "r"), ::endmntent);
  if (!mounts) return std::nullopt;
  std::optional<std::string> options;
  std::array<char, 16384> memory;
  mntent entry{};
  while (::getmntent_r(mounts.get(), &entry, memory.data(), memory.size()) != nullptr) {
    if (mountpoint != entry.mnt_dir) continue;
    options.reset();
    if (std::string_view(entry.mnt_type) == "fuse.pnfsrdma") options = entry.mnt_opts;
  }
  return options;
}

}  // namespace

bool is_remount(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(),
                     [](const std::string& text) { return has(text, "remount"); });
}

Result<Remount> plan_remount(std::string_view now, const std::vector<std::string>& options) {
  Remount plan{.flags = MS_REMOUNT, .ignored = {}};
  const auto apply = [&](const Flag& flag) {
    plan.flags = flag.set ? plan.flags | flag.bit : plan.flags & ~flag.bit;
  };
  for (const std::string_view part : split_at_commas(now)) {
    if (const Flag* flag = flag_of(part)) apply(*flag);
  }
  for (const std::string& text : options) {
    for (const std::string_view part : split_at_commas(text)) {
      if (const Flag* flag = flag_of(part)) {
        apply(*flag);
      } else if (!is_told_by_kernel(part)) {
        MountOptions checked;
        TRY(parse_options(part, checked));
        if (!is_for_others(part) && !has(now, part)) plan.ignored.emplace_back(part);
      }
    }
  }
  return plan;
}

Result<Remount> remount(const std::string& mountpoint, const std::vector<std::string>& options) {
  const auto now = options_of_mount(mountpoint);
  if (!now)
    return fail(ENOENT, fmt::format("{}: nothing to remount: no pnfsrdma is mounted there", mountpoint));
  TRY_ASSIGN(Remount plan, plan_remount(*now, options));
  if (::mount(nullptr, mountpoint.c_str(), nullptr, plan.flags, nullptr) == 0) return plan;
  if (errno == EBUSY) return fail(EBUSY, fmt::format("{}: remount: a file is open for writing", mountpoint));
  return std::unexpected(Error::from_errno(mountpoint + ": remount"));
}

}  // namespace pnfsrdma::fuse_client

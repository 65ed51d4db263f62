// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <optional>

namespace pnfsrdma::fuse_client {
namespace {

using client::number;
using client::one_of;
using client::Option;

// Options that only set something.
bool take_flag(std::string_view name, MountOptions& options) {
  struct Flag {
    std::string_view name;
    void (*apply)(MountOptions&);
  };
  static constexpr std::array kFlags = {
      Flag{"ro", [](MountOptions& o) { o.read_only = true; }},
      Flag{"rw", [](MountOptions& o) { o.read_only = false; }},
      Flag{"noac", [](MountOptions& o) { o.attributes = {{}, {}, {}, {}}; }},
      Flag{"ac", [](MountOptions& o) { o.attributes = {}; }},
      Flag{"writeback", [](MountOptions& o) { o.writeback = true; }},
      Flag{"allow_other", [](MountOptions& o) { o.allow_other = true; }},
      Flag{"noallow_other", [](MountOptions& o) { o.allow_other = false; }},
      Flag{"default_permissions", [](MountOptions& o) { o.default_permissions = true; }},
      Flag{"nodefault_permissions", [](MountOptions& o) { o.default_permissions = false; }},
      Flag{"direct_io", [](MountOptions& o) { o.direct_only = true; }},
      Flag{"rdirplus", [](MountOptions& o) { o.attributes_with_names = true; }},
      Flag{"nordirplus", [](MountOptions& o) { o.attributes_with_names = false; }},
      Flag{"debug", [](MountOptions& o) { o.debug = o.foreground = true; }},
      // main() has done it.
      Flag{"remount", [](MountOptions&) {}},
      // What mount(8) and fstab add and what does nothing here.
      Flag{"defaults", [](MountOptions&) {}},
      Flag{"atime", [](MountOptions&) {}},
      Flag{"diratime", [](MountOptions&) {}},
      Flag{"nodiratime", [](MountOptions&) {}},
      Flag{"relatime", [](MountOptions&) {}},
      Flag{"strictatime", [](MountOptions&) {}},
      Flag{"_netdev", [](MountOptions&) {}},
      Flag{"auto", [](MountOptions&) {}},
      Flag{"noauto", [](MountOptions&) {}},
      Flag{"nofail", [](MountOptions&) {}},
      Flag{"user", [](MountOptions&) {}},
      Flag{"nolock", [](MountOptions&) {}},
  };
  for (const Flag& flag : kFlags) {
    if (flag.name == name) return flag.apply(options), true;
  }
  return name.starts_with("x-");
}

// Options of mount(8) that the kernel or libfuse applies.
bool take_kernel_option(std::string_view name, MountOptions& options) {
  static constexpr std::array<std::string_view, 10> kKnown = {
      "suid", "nosuid", "dev", "nodev", "exec", "noexec", "async", "sync", "dirsync", "noatime"};
  if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end()) return false;
  options.kernel.emplace_back(name);
  return true;
}

Result<bool> take_timeouts(const Option& option, AttributeTimeouts& timeouts) {
  constexpr uint32_t kDay = 86400;
  const auto set = [&](std::initializer_list<std::chrono::seconds*> targets) -> Result<bool> {
    TRY_ASSIGN(const uint32_t seconds, number(option, 0, kDay));
    for (std::chrono::seconds* target : targets) *target = std::chrono::seconds(seconds);
    return true;
  };
  if (option.name == "acregmin") return set({&timeouts.file_min});
  if (option.name == "acregmax") return set({&timeouts.file_max});
  if (option.name == "acdirmin") return set({&timeouts.directory_min});
  if (option.name == "acdirmax") return set({&timeouts.directory_max});
  if (option.name == "actimeo") {
    return set({&timeouts.file_min, &timeouts.file_max, &timeouts.directory_min, &timeouts.directory_max});
  }
  return false;
}

// Options that take one of a few words.
Result<bool> take_word(const Option& option, MountOptions& options) {
  if (option.name == "local_lock") {
    TRY(one_of(option, {"none", "flock", "posix", "all"},
               "which locks stay on this host: none, flock, posix or all"));
    for (const LocalLock which : {LocalLock::kNone, LocalLock::kFlock, LocalLock::kPosix, LocalLock::kAll}) {
      if (to_string(which) == *option.value) options.local_lock = which;
    }
  } else if (option.name == "lookupcache") {
    TRY(one_of(option, {"all", "pos", "positive", "none"},
               "which answers are believed for a while: all, pos (names that are there) or none"));
    options.lookup_cache = *option.value == "all"    ? LookupCache::kAll
                           : *option.value == "none" ? LookupCache::kNone
                                                     : LookupCache::kPositive;
  } else if (option.name == "cache") {
    TRY(one_of(option, {"none"}, "what is cached: none (noac, lookupcache=none and direct_io)"));
    options.attributes = {{}, {}, {}, {}};
    options.lookup_cache = LookupCache::kNone;
    options.direct_only = true;
  } else {
    return false;
  }
  return true;
}

Result<bool> take_number(const Option& option, MountOptions& options) {
  constexpr uint32_t kRingMemoryMax = 1 << 20, kNameMemoryMax = 1 << 20;
  if (option.name == "threads") {
    TRY_ASSIGN(options.threads, number(option, 1, 64));
  } else if (option.name == "ring_memory") {
    TRY_ASSIGN(options.ring_memory_mib, number(option, 0, kRingMemoryMax));
  } else if (option.name == "name_memory") {
    TRY_ASSIGN(options.name_memory_mib, number(option, 0, kNameMemoryMax));
  } else {
    return false;
  }
  return true;
}

// Whether it can be listened on shows when it is done.
Result<bool> take_metrics(const Option& option, MountOptions& options) {
  if (option.name != "metrics") return false;
  const std::string_view value = option.value.value_or("");
  const bool is_path = value.starts_with('/') || value.starts_with("unix:/");
  const size_t colon = value.rfind(':');
  if (!is_path && (colon == std::string_view::npos || colon == 0)) {
    return fail(EINVAL, fmt::format("mount option metrics={}: ADDRESS:PORT or unix:/path is needed, e.g. "
                                    "metrics=127.0.0.1:9105",
                                    value));
  }
  if (!is_path) TRY(number(Option{"metrics", value.substr(colon + 1)}, 0, 65535));
  options.metrics = value;
  return true;
}

Result<> take(std::string_view text, MountOptions& options) {
  const Option option = client::split_option(text);
  if (!option.value && (take_flag(option.name, options) || take_kernel_option(option.name, options)))
    return {};
  if (option.name.starts_with("x-") || option.name == "user") return {};
  TRY_ASSIGN(bool taken, take_timeouts(option, options.attributes));
  if (!taken) {
    TRY_ASSIGN(taken, client::take_connect_option(option, options));
  }
  if (!taken) {
    TRY_ASSIGN(taken, take_word(option, options));
  }
  if (!taken) {
    TRY_ASSIGN(taken, take_number(option, options));
  }
  if (!taken) {
    TRY_ASSIGN(taken, take_metrics(option, options));
  }
  if (taken) return {};
  return fail(EINVAL, fmt::format("mount option {}: not known; see pnfsrdma-fuse --help", text));
}

Result<> check(const MountOptions& options) {
  const AttributeTimeouts& timeouts = options.attributes;
  if (timeouts.file_min > timeouts.file_max || timeouts.directory_min > timeouts.directory_max) {
    return fail(EINVAL, "mount options acregmin/acdirmin: greater than acregmax/acdirmax");
  }
  if (options.writeback && options.effective_local_lock() != LocalLock::kAll) {
    return fail(EINVAL,
                "mount option writeback: with it locks stay on this host; leave out local_lock or say "
                "local_lock=all, or leave out writeback");
  }
  return {};
}

}  // namespace

std::string_view to_string(LocalLock local_lock) {
  switch (local_lock) {
    case LocalLock::kNone:
      return "none";
    case LocalLock::kFlock:
      return "flock";
    case LocalLock::kPosix:
      return "posix";
    case LocalLock::kAll:
      return "all";
  }
  return "";
}

Result<> parse_options(std::string_view text, MountOptions& options) {
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) TRY(take(text.substr(0, comma), options));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return check(options);
}

initiator::SessionOptions session_options(const MountOptions& options, std::string owner) {
  initiator::SessionOptions session = client::session_options(options, std::move(owner));
  session.mount_point = options.mountpoint;
  return session;
}

}  // namespace pnfsrdma::fuse_client

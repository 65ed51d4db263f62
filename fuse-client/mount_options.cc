// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/mount_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <functional>
#include <optional>

#include "shared/rpc_rdma/limits.h"

namespace pnfsrdma::fuse_client {
namespace {

using initiator::Persistence;

struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

Option split(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Result<uint32_t> number(const Option& option, uint32_t least, uint32_t most) {
  const std::string_view text = option.value.value_or("");
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return fail(EINVAL, fmt::format("mount option {}={}: a number from {} to {} is needed", option.name, text,
                                    least, most));
  }
  return value;
}

Result<> one_of(const Option& option, std::initializer_list<std::string_view> allowed, std::string_view why) {
  const std::string_view value = option.value.value_or("");
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return {};
  return fail(EINVAL, fmt::format("mount option {}={}: {}", option.name, value, why));
}

// Options that only set something.
bool take_flag(std::string_view name, MountOptions& options) {
  struct Flag {
    std::string_view name;
    void (*apply)(MountOptions&);
  };
  static constexpr std::array kFlags = {
      Flag{"hard", [](MountOptions& o) { o.persistence = Persistence::kHard; }},
      Flag{"soft", [](MountOptions& o) { o.persistence = Persistence::kSoft; }},
      Flag{"softerr", [](MountOptions& o) { o.persistence = Persistence::kSoftError; }},
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

Result<bool> take_version(const Option& option, MountOptions& options) {
  if (option.name == "minorversion") {
    TRY_ASSIGN(options.minor_version, number(option, 1, 2));
    return true;
  }
  if (option.name != "vers" && option.name != "nfsvers") return false;
  TRY(one_of(option, {"4", "4.1", "4.2"}, "this client speaks 4.1 and 4.2"));
  options.minor_version = *option.value == "4.1" ? 1 : 2;
  return true;
}

// Options that this client can only do in one way: said so instead of ignoring another wish.
Result<bool> take_fixed(const Option& option, MountOptions& options) {
  if (option.name == "proto") {
    TRY(one_of(option, {"tcp", "tcp6", "rdma", "rdma6", "iwarp"},
               "tcp (calls by TCP), rdma (calls and data by an RDMA device or not at all) or iwarp (both by "
               "iWARP in user space)"));
    const bool device = option.value->starts_with("rdma");
    options.calls_by_rdma = device || *option.value == "iwarp";
    options.data_transports = device ? DataTransports::kRdma : DataTransports::kTcp;
  } else if (option.name == "sec") {
    TRY(one_of(option, {"sys"}, "only sec=sys is supported"));
  } else if (option.name == "xprtsec") {
    TRY(one_of(option, {"none"}, "only xprtsec=none is supported"));
  } else if (option.name == "local_lock") {
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
  } else if (option.name == "require_durability") {
    TRY(one_of(option, {"persistent", "power", "none"}, "persistent or none"));
    options.require_persistent = *option.value != "none";
  } else {
    return false;
  }
  return true;
}

Result<bool> take_number(const Option& option, MountOptions& options) {
  if (option.name == "port") {
    TRY_ASSIGN(const uint32_t port, number(option, 1, 65535));
    options.port = static_cast<uint16_t>(port);
    options.port_given = true;
  } else if (option.name == "timeo") {
    TRY_ASSIGN(options.timeout_deciseconds, number(option, 1, 36000));
  } else if (option.name == "retrans") {
    TRY_ASSIGN(options.retransmissions, number(option, 0, 100));
  } else if (option.name == "flush_after") {
    TRY_ASSIGN(options.flush_after_seconds, number(option, 0, 3600));
  } else if (option.name == "threads") {
    TRY_ASSIGN(options.threads, number(option, 1, 64));
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
  if (!is_path) TRY(number({"metrics", value.substr(colon + 1)}, 0, 65535));
  options.metrics = value;
  return true;
}

Result<> take(std::string_view text, MountOptions& options) {
  const Option option = split(text);
  if (!option.value && (take_flag(option.name, options) || take_kernel_option(option.name, options)))
    return {};
  if (option.name.starts_with("x-") || option.name == "user") return {};
  TRY_ASSIGN(bool taken, take_timeouts(option, options.attributes));
  if (!taken) {
    TRY_ASSIGN(taken, take_version(option, options));
  }
  if (!taken) {
    TRY_ASSIGN(taken, take_fixed(option, options));
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

Result<> parse_source(std::string_view source, MountOptions& options) {
  const auto wrong = [&](std::string_view why) {
    return fail(EINVAL, fmt::format("{}: {}; write server:/path, server:port:/path or [v6-address]:/path",
                                    source, why));
  };
  std::string_view rest = source;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return wrong("no ']' behind the address");
    options.host = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    const size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return wrong("no ':' between server and path");
    options.host = rest.substr(0, colon);
    rest.remove_prefix(colon);
  }
  if (options.host.empty()) return wrong("no server");
  if (!rest.starts_with(':')) return wrong("no ':' behind the server");
  rest.remove_prefix(1);
  if (!rest.starts_with('/')) {
    const size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return wrong("the path does not begin with '/'");
    TRY_ASSIGN(const uint32_t port, number({"port", rest.substr(0, colon)}, 1, 65535));
    options.port = static_cast<uint16_t>(port);
    options.port_given = true;
    rest.remove_prefix(colon + 1);
  }
  if (!rest.starts_with('/')) return wrong("the path does not begin with '/'");
  options.path = rest;
  return {};
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
  initiator::SessionOptions session;
  session.host = options.host;
  // nfs(5): RPC-over-RDMA has a port of its own.
  session.port = options.calls_by_rdma && !options.port_given ? rpc_rdma::kPort : options.port;
  session.owner = std::move(owner);
  session.mount_point = options.mountpoint;
  session.persistence = options.persistence;
  session.timeout = Milliseconds(options.timeout_deciseconds * 100);
  session.retransmissions = options.retransmissions;
  session.minor_version = options.minor_version;
  return session;
}

}  // namespace pnfsrdma::fuse_client

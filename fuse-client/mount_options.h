// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/client/connect_options.h"
#include "shared/initiator/session/options.h"

namespace pnfsrdma::fuse_client {

// How long attributes are believed: nfs(5), acregmin and friends. A value that did not change lately is
// believed longer.
struct AttributeTimeouts {
  std::chrono::seconds file_min{3};
  std::chrono::seconds file_max{60};
  std::chrono::seconds directory_min{30};
  std::chrono::seconds directory_max{60};
  bool operator==(const AttributeTimeouts&) const = default;
};

// local_lock=: which locks stay on this host (nfs(5)).
enum class LocalLock : uint8_t { kNone, kFlock, kPosix, kAll };

// lookupcache=: which answers to LOOKUP are believed for a while (nfs(5)).
enum class LookupCache : uint8_t { kAll, kPositive, kNone };

// What `-o` and the command line say, after defaults: one aggregate, in the words of nfs(5).
struct MountOptions : client::ConnectOptions {
  std::string mountpoint;
  AttributeTimeouts attributes;
  bool read_only = false;
  bool writeback = false;  // the kernel's write-back cache: for a single writer
  LookupCache lookup_cache = LookupCache::kAll;
  std::optional<LocalLock> local_lock;
  bool allow_other = false;
  bool default_permissions = true;
  bool direct_only = false;           // direct_io: no page cache at all
  bool attributes_with_names = true;  // rdirplus: a listing tells the kernel the attributes, too
  bool foreground = false;
  bool debug = false;
  uint32_t threads = 16;            // FUSE workers at most
  uint32_t ring_memory_mib = 1024;  // of all programs' rings (shared/ring); 0: none is served
  uint32_t name_memory_mib = 64;    // of names and attributes that the kernel does not hold; 0: none is kept
  std::string metrics;  // where Prometheus is answered: "127.0.0.1:9105", "unix:/path"; empty: nowhere
  // What stays in this host's kernel until it likes to write it can't be shared under locks: with writeback
  // they are local.
  LocalLock effective_local_lock() const {
    return local_lock.value_or(writeback ? LocalLock::kAll : LocalLock::kNone);
  }
  // With writeback the newest bytes may be the kernel's alone.
  bool serves_rings() const { return ring_memory_mib > 0 && !writeback; }
  bool posix_locks_local() const {
    return effective_local_lock() == LocalLock::kPosix || effective_local_lock() == LocalLock::kAll;
  }
  bool flocks_local() const {
    return effective_local_lock() == LocalLock::kFlock || effective_local_lock() == LocalLock::kAll;
  }
  // Anything left that libfuse or the kernel knows: nosuid, nodev, noexec, noatime, ...
  std::vector<std::string> kernel;
};

// "none", "flock", "posix", "all".
std::string_view to_string(LocalLock local_lock);

// One `-o` argument: options with commas between. EINVAL names the option and what it may be.
Result<> parse_options(std::string_view text, MountOptions& options);

// The session's share of the options, and where it is mounted. Who makes the transports fills in rdma_transports.
initiator::SessionOptions session_options(const MountOptions& options, std::string owner);

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "server/mds/admin/snapshot_schedule.h"
#include "server/mds/ops/exports.h"
#include "shared/base/log.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// The administrator's face of the server (server/console).
struct ConsoleConfig {
  std::vector<std::string> listen{"127.0.0.1:8443"};  // numeric "host:port", HTTPS; empty: none
  std::string socket = "/run/pnfsrdma/console.sock";  // for root; empty: none
  std::string certificate;                            // PEM; empty: one of its own in the data directory
  std::string key;                                    // PEM, of that certificate
  std::string web_directory;                          // the built web console; empty: where it is installed
};

// The metadata's log in etcd, which several servers share.
struct MetadataLogConfig {
  std::vector<std::string> endpoints;  // "http://host:port" or "https://host:port"; empty: there is no log
  std::string prefix = "/pnfsrdma";    // of the keys in etcd
  std::string name;                    // of this server among the others; empty: the host's
  std::string ca_file;                 // PEM: who signed etcd's certificates; empty: whom the host trusts
  std::string certificate;             // PEM: what this server shows to etcd; empty: nothing
  std::string key;                     // PEM, of that certificate
  std::string copies;  // "host:port", where this one gives copies of its metadata; empty: nowhere
};

// How bricks with a TCP address are reached: by TLS, with this certificate, if there is one.
struct BrickTlsConfig {
  std::string ca_file;             // PEM: who signed the bricks' certificates
  std::string certificate;         // PEM: what this server shows to bricks; empty: no TLS
  std::string key;                 // PEM, of that certificate
  std::vector<std::string> plain;  // "tcp:host:port": bricks that are reached without it all the same
};

// What the administrator may set. JSON with the members' names; every one may be left out.
struct Config {
  std::vector<std::string> listen{"[::]:2049"};  // "host:port"; port 0: the kernel chooses
  std::vector<std::string> rdma_listen;          // the same for RPC-over-RDMA (port 20049); empty: not served
  std::string data_directory = "/var/lib/pnfsrdma/mds";
  // Control sockets, "unix:/path" or "tcp:host:port", of a first start: later the stored list counts.
  std::vector<std::string> bricks{"unix:/run/pnfsrdma/brick.sock"};
  BrickTlsConfig brick_tls;
  uint32_t brick_patience_seconds = 30;     // 1 to 3600: files of a brick that is away wait, then answer EIO
  uint32_t lease_seconds = 30;              // 1 to 3600
  uint32_t grace_seconds = 0;               // 0: as long as the lease
  uint32_t session_slots = 64;              // 1 to 1024
  uint64_t small_file_bytes = 16384;        // mdsthreshold: at most this goes through the server. 0: no hint
  bool delegations = true;                  // whether clients get any
  uint64_t metadata_cache_mib = 64;         // of the metadata engine
  MetadataLogConfig metadata_log;           // none: the metadata are on this host only
  uint64_t memory_budget_mib = 512;         // 64 at least: what peers may make the server hold
  uint64_t memory_per_address_mib = 0;      // of one address; 0: half of the budget
  uint32_t connections_per_address = 2048;  // 1 to 4096
  uint32_t stalled_request_seconds =
      20;  // 1 to 3600: half a request of which nothing comes ends its connection
  std::vector<Export> exports{Export{}};  // "/" to everybody, root squashed
  SnapshotSchedule snapshot_schedule;     // none is taken
  LogLevel log_level = LogLevel::kInfo;
  ConsoleConfig console;
  std::set<std::string> given;  // the keys that were in the file
};

// EINVAL naming the key that is unknown, of the wrong type or out of range.
Result<Config> parse_config(const std::string& json_text);
Result<Config> load_config(const std::string& path);
// As parse_config() takes it, defaults filled in.
std::string to_json(const Config& config);
// The member "snapshot_schedule" alone. EINVAL.
Result<SnapshotSchedule> parse_snapshot_schedule(const std::string& json_text);
// Its member "exports".
std::string exports_to_json(const std::vector<Export>& exports);
// What the console keeps: certificate, audit log, set-up token.
std::string console_directory(const Config& config);

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/brickd/limits.h"
#include "shared/base/log.h"
#include "shared/base/result.h"

namespace pnfsrdma::brick {

// What pnfsrdma-brickd is told. The JSON file has the same shape: {"pool": {"path": …}, …}.
struct Config {
  struct PoolConfig {
    std::string path;                  // a file, or a device DAX device
    std::string size;                  // of a file to be made by --format: "4G"; empty: as it is
    std::string partition;             // of it, by name; empty: all of it is one pool
    bool create = false;               // made at start, with that size, if there is no such file
    std::string durability = "power";  // of a plain file: "power" (msync) or "process" (page cache only)
  } pool;
  struct ControlConfig {
    std::string unix_path = "/run/pnfsrdma/brick.sock";  // key "unix"; empty: none
    std::string tcp;                                     // "host:port"; empty: none
    // Of TCP: who connects shows a certificate. All empty: anybody may control the brick.
    struct TlsConfig {
      std::string certificate;         // PEM
      std::string key;                 // PEM, of that certificate
      std::string ca_file;             // PEM: whose certificates are let in
      std::vector<std::string> peers;  // which of them, by name; empty: all

      bool wanted() const { return !certificate.empty(); }
      bool operator==(const TlsConfig&) const = default;
    } tls;
  } control;
  struct DataConfig {
    std::vector<std::string> listen = {"127.0.0.1:20051"};
    std::vector<std::string>
        advertise;             // what clients are told; needed where a wildcard address is listened on
    std::string crc = "auto";  // iWARP's CRC32C: "auto", "on" or "off"
    // Where the RDMA devices listen: "auto" is every address of theirs, "host:port" one of them; empty:
    // nowhere.
    std::vector<std::string> rdma = {"auto"};
  } data;
  uint32_t lease_seconds = 30;
  Limits limits;
  std::string log_level = "info";  // "debug", "info", "warning", "error" or "off"
};

// The port of "auto" in data.rdma. Not the one of iWARP in user space: an iWARP NIC shares the host's TCP
// ports.
inline constexpr uint16_t kRdmaPort = 20052;

// Reads and checks a file. Errors name the key and what it may be; an unknown key is one.
Result<Config> load_config(const std::string& path);
Result<Config> parse_config(std::string_view json);
// The whole, defaults filled in, as parse_config() takes it.
std::string print_config(const Config& config);

// "4G", "512M", "2097152"; powers of 1024.
Result<uint64_t> parse_size(std::string_view text);
Result<LogLevel> parse_log_level(std::string_view text);

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/rpc/socket_address.h"

namespace pnfsrdma::bench {

// One NFS server that is measured.
struct Target {
  std::string name;  // "ours"
  rpc::SocketAddress address;
  std::vector<int> processes;  // its own, where they run here: their processor time is read
};

// Of a file that is written to, at most.
inline constexpr uint32_t kFileBytes = 64 * 1024;

struct ServerSettings {
  std::vector<Target> targets;
  std::vector<std::string> processes;                  // as given: "ours=4711"
  std::string path = "/";                              // below it the generator makes a folder of its own
  std::vector<std::string> rows;                       // empty: all
  std::vector<uint32_t> clients = {1, 10, 100, 1000};  // closed loop
  std::vector<uint32_t> open_clients = {10, 1000};     // open loop
  std::string open = "off";                            // "half", or requests a second
  double seconds = 1;                                  // of one slice: a row, a server, a round
  uint32_t rounds = 3;
  uint32_t slots = 4;  // requests a client may have outstanding, open loop
  uint32_t minor_version = 1;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t fill = 0;  // not 0: so many files are made, and nothing else
  uint32_t folders = 100;
  uint32_t fill_bytes = 0;  // written to each of those files
  // What is held of each of those files until the lease has ended: with one, the generator leaves without a word.
  std::string hold = "nothing";  // "opens", "layouts"
  bool keep = false;             // the folder stays
  bool json = false;
  std::string json_file;
};

}  // namespace pnfsrdma::bench

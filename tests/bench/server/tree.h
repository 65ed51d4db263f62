// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/server/worker.h"

namespace pnfsrdma::bench {

inline constexpr uint32_t kFolders = 16;
inline constexpr uint32_t kFilesPerFolder = 64;

// What fill.h makes: m0, m1, … with file0, file1, … in turn.
struct ManyFiles {
  uint64_t wanted = 0;
  uint64_t begun = 0;
  uint64_t made = 0;
  uint64_t begun_folders = 0;
  bool opens_held = false;
  bool layouts_held = false;
  uint32_t bytes = 0;  // of each
  std::vector<nfs4::FileHandle> folders;
  std::vector<SteadyTime> marks;  // when each tenth of the files was made
};

// The generator's own folder on a server:
//
//   bench-server.PID/s0 … s15       each with f0 … f63: what all clients look up, list and stat
//                    c0, c1, …      one for each client, with w0, w1, …: one file for each of its slots
struct Tree {
  std::string name;                // "bench-server.4711"
  std::vector<std::string> above;  // the components of the path it stands in
  nfs4::FileHandle above_handle;
  nfs4::FileHandle root;
  std::vector<nfs4::FileHandle> folders;
  std::vector<std::vector<nfs4::FileHandle>> files;
  ManyFiles many;
  std::vector<uint32_t> slots;  // of client n: how many files are in its folder; 0: no folder
  bool layouts = false;         // the server has layouts of our type
};

inline std::string shared_folder(uint32_t number) {
  return "s" + std::to_string(number);
}
inline std::string shared_file(uint32_t number) {
  return "f" + std::to_string(number);
}
inline std::string client_folder(uint32_t number) {
  return "c" + std::to_string(number);
}
inline std::string slot_file(uint32_t slot) {
  return "w" + std::to_string(slot);
}

// The folder itself: played by one worker.
const Calls& make_root();
const Calls& remove_root();
// The shared folders, played by workers of clients 0 … kFolders - 1, one folder each. The removal takes the
// clients' folders along.
const Calls& make_shared_folder();
const Calls& remove_folders();
// The client's folder and the slot's file, played by every worker; folders that are there are taken.
const Calls& make_client_folder();

// What several rows and the tree need.
nfs4::OpenArguments open_arguments(const Worker& worker, std::string name, bool create);
Outcome read_made_file(Worker& worker, nfs4::CompoundResultReader& results);

}  // namespace pnfsrdma::bench

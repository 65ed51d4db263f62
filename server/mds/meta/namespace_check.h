// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// What check_namespace() found. Consistent: no problems.
struct NamespaceReport {
  uint64_t inodes = 0;
  uint64_t directories = 0;
  uint64_t names = 0;
  uint64_t orphans = 0;
  uint64_t extents = 0;
  uint64_t extent_bytes = 0;
  uint64_t dirty_tails = 0;
  std::vector<std::string> problems;  // one sentence each, at most kProblemsMax

  bool consistent() const { return problems.empty(); }
};
inline constexpr size_t kProblemsMax = 1000;

// Reads the whole store and checks every promise between its records: each name leads to an inode of its
// type, link counts and directory sizes are the number of names, names and cookies agree, parents are right
// and lead to the root, nameless inodes are orphans and the reverse, extents are aligned, inside the file
// limits, add up to space_used and overlap only where the memory is on record as shared by so many, ids and
// cookies are below their counters, what quotas count is what inodes add up to. The same of each snapshot that is
// ready, in its own copy.
// Changes nothing. Memory: about 100 bytes per inode and 150 per extent.
// Errors: those of the store. Not for the control loop of a busy server: it reads everything.
Result<NamespaceReport> check_namespace(KeyValueStore& store);

}  // namespace pnfsrdma::mds

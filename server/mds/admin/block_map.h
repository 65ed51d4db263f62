// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "server/console/inventory.h"
#include "server/mds/grants/held_layout.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::mds {

// A grant that is out, or dying, with whose it is.
struct MappedGrant {
  uint64_t client = 0;
  uint64_t inode = 0;
  ByteRange memory;  // logical addresses
  uint64_t offset = 0;
  bool writable = false;
  std::optional<std::string> path = {};
  std::string client_name = {};
};

// The blocks of a brick as they lie in it: free, data, or within somebody's reach, cut where any of that
// changes. Of the grants of one run the first console::kBlockGrantsMax are named. Pure function; about
// (runs + grants) * log(grants). A deque of grants: a vector that grows copies all of them in one turn.
std::vector<console::BlockRun> map_blocks(const std::vector<brick::SurveyedRun>& surveyed,
                                          std::deque<MappedGrant> grants);

}  // namespace pnfsrdma::mds

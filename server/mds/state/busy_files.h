// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "server/mds/state/activity.h"

namespace pnfsrdma::mds {

// The files with most operations of late, in bounded memory whatever the number of files: counts that halve every
// kHalfLife seconds, in a table of kFiles places. A file that is not in it takes the place of the least busy one
// and inherits its count (the "space saving" algorithm), so that one that is busy for long gets in however many others
// come and go. What is told is without it: never too much. Without I/O and
// without a clock of its own. Control loop only.
class BusyFiles {
 public:
  static constexpr size_t kFiles = 128;
  static constexpr double kHalfLife = 30;

  struct Rate {
    uint64_t inode = 0;
    double operations = 0;  // per second
    double read_bytes = 0;
    double write_bytes = 0;
  };

  // About 20 ns for a file in the table, else a look at 24 counts.
  void add(uint64_t inode, const Activity& more);
  // So many seconds have passed.
  void age(double seconds);
  // The busiest first, at most `count`; none below one operation in kHalfLife seconds.
  std::vector<Rate> busiest(size_t count) const;

 private:
  struct Place {
    uint64_t inode = 0;
    double operations = 0;  // since it is here
    double read_bytes = 0;
    double write_bytes = 0;
  };
  static constexpr size_t kBlock = 8;

  size_t place_of(uint64_t inode);
  size_t least_place() const;

  // Operations with what was inherited; and the least of each block of them, because the least of all is looked for
  // often.
  std::array<double, kFiles> counts_{};
  std::array<double, kFiles / kBlock> least_{};
  std::vector<Place> places_;
  std::unordered_map<uint64_t, size_t> index_;
};

}  // namespace pnfsrdma::mds

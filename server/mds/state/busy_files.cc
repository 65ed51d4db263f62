// SPDX-License-Identifier: Apache-2.0
#include "server/mds/state/busy_files.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pnfsrdma::mds {

size_t BusyFiles::place_of(uint64_t inode) {
  if (const auto found = index_.find(inode); found != index_.end()) return found->second;
  size_t place = places_.size();
  if (place < kFiles) {
    places_.push_back({.inode = inode});
  } else {
    place = least_place();
    index_.erase(places_[place].inode);
    places_[place] = {.inode = inode};
  }
  index_.emplace(inode, place);
  return place;
}

size_t BusyFiles::least_place() const {
  const auto block = static_cast<size_t>(std::ranges::min_element(least_) - least_.begin());
  const auto first = counts_.begin() + block * kBlock;
  return static_cast<size_t>(std::min_element(first, first + kBlock) - counts_.begin());
}

void BusyFiles::add(uint64_t inode, const Activity& more) {
  const size_t place = place_of(inode);
  const auto operations = static_cast<double>(more.operations);
  counts_[place] += operations;
  const auto block = counts_.begin() + place / kBlock * kBlock;
  least_[place / kBlock] = *std::min_element(block, block + kBlock);
  places_[place].operations += operations;
  places_[place].read_bytes += static_cast<double>(more.read_bytes);
  places_[place].write_bytes += static_cast<double>(more.write_bytes);
}

void BusyFiles::age(double seconds) {
  const double left = std::exp2(-std::max(seconds, 0.0) / kHalfLife);
  for (double& count : counts_) count *= left;
  for (double& least : least_) least *= left;
  for (Place& place : places_) {
    for (double Place::* member : {&Place::operations, &Place::read_bytes, &Place::write_bytes})
      place.*member *= left;
  }
}

// A steady rate r makes a count of r * kHalfLife / ln 2.
std::vector<BusyFiles::Rate> BusyFiles::busiest(size_t count) const {
  constexpr double kPerSecond = std::numbers::ln2 / kHalfLife;
  std::vector<Rate> found;
  for (const Place& place : places_) {
    if (place.operations * kPerSecond < 1 / kHalfLife) continue;
    found.push_back({.inode = place.inode,
                     .operations = place.operations * kPerSecond,
                     .read_bytes = place.read_bytes * kPerSecond,
                     .write_bytes = place.write_bytes * kPerSecond});
  }
  const auto busier = [](const Rate& one, const Rate& other) {
    return one.operations != other.operations ? one.operations > other.operations : one.inode < other.inode;
  };
  std::ranges::sort(found, busier);
  if (found.size() > count) found.resize(count);
  return found;
}

}  // namespace pnfsrdma::mds

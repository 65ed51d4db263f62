// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/write_verifiers.h"

#include <algorithm>

#include "shared/base/bytes.h"

namespace pnfsrdma::mds {

namespace {

// Spreads the number over the bits that the era has: two pairs of small numbers must not give the same sum.
constexpr uint64_t kSpread = 0x9E37'79B9'7F4A'7C15;

}  // namespace

nfs4::Verifier WriteVerifiers::verifier(uint64_t number) const {
  nfs4::Verifier value{};
  store_big_endian(value.data(), era_ ^ (number * kSpread));
  return value;
}

// A write that a brick has lost moves the file to the newest number; what the brick takes from now on counts
// anew.
void WriteVerifiers::look(File& file, uint64_t changes, const Current& current) {
  const bool doubtful = file.unknown_writes && file.number != changes;
  const bool lost = doubtful || std::ranges::any_of(file.bricks, [&](const auto& took) {
                      return current(took.first) != took.second;
                    });
  if (!lost) return;
  file.number = changes;
  file.bricks.clear();
}

nfs4::Verifier WriteVerifiers::wrote(uint64_t inode, const ByteRange& range, const Bricks& bricks,
                                     uint64_t changes, const Current& current) {
  auto known = by_inode_.find(inode);
  if (known == by_inode_.end()) {
    if (files_.size() >= files_max_) {
      by_inode_.erase(files_.front().inode);
      files_.pop_front();
      any_forgotten_ = true;
    }
    files_.push_back(
        {.inode = inode, .number = changes, .unknown_writes = any_forgotten_ || inode < first_new_});
    known = by_inode_.emplace(inode, std::prev(files_.end())).first;
  } else {
    files_.splice(files_.end(), files_, known->second);
  }
  File& file = *known->second;
  file.writes = ++writes_;
  look(file, changes, current);
  // Under what the brick said when the bytes were sent: one that changed meanwhile is found at the COMMIT.
  file.bricks.insert(bricks.begin(), bricks.end());
  add(file.uncommitted, range);
  return verifier(file.number);
}

void WriteVerifiers::add(RangeSet& uncommitted, const ByteRange& range) {
  uncommitted.add(range);
  const std::vector<ByteRange> all = uncommitted.all();
  if (all.size() <= kRangesMax) return;
  ByteRange least{0, kEndOfFile};
  for (size_t i = 1; i < all.size(); ++i) {
    const ByteRange between{all[i - 1].end, all[i].begin};
    if (between.length() < least.length()) least = between;
  }
  uncommitted.add(least);
}

std::vector<uint64_t> WriteVerifiers::uncommitted() const {
  std::vector<uint64_t> all;
  for (const File& file : files_) {
    if (!file.uncommitted.empty()) all.push_back(file.inode);
  }
  return all;
}

std::vector<ByteRange> WriteVerifiers::uncommitted(uint64_t inode) const {
  const auto known = by_inode_.find(inode);
  if (known == by_inode_.end()) return {};
  return known->second->uncommitted.all();
}

uint64_t WriteVerifiers::mark(uint64_t inode) const {
  const auto known = by_inode_.find(inode);
  return known == by_inode_.end() ? 0 : known->second->writes;
}

nfs4::Verifier WriteVerifiers::committed(uint64_t inode, uint64_t mark, bool whole, uint64_t changes,
                                         const Current& current) {
  const auto known = by_inode_.find(inode);
  if (known == by_inode_.end()) return verifier(changes);
  File& file = *known->second;
  look(file, changes, current);
  const nfs4::Verifier answer = verifier(file.number);
  // The number stays with the file as long as the client may compare it: forgotten, it would be the newest.
  const bool settled = whole && file.writes == mark && file.number == changes;
  if (settled) {
    files_.erase(known->second);
    by_inode_.erase(known);
  } else if (whole && file.writes == mark) {
    file.bricks.clear();
    file.uncommitted = {};
  }
  return answer;
}

}  // namespace pnfsrdma::mds

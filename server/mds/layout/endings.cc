// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/endings.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::mds {

namespace {
constexpr size_t kFewGrants = 64;
}  // namespace

bool Ending::small() const {
  return pieces.size() == 1 && pieces.front()->grants.size() <= kFewGrants;
}

bool Ending::writes() const {
  return std::ranges::any_of(pieces, [](const DyingPointer& piece) { return piece->writable_end > 0; });
}

EndingPointer Endings::add(Ending ending, std::function<void()> done) {
  // What had no grant, holes, has ended, too.
  if (ending.pieces.empty()) ending.pieces.push_back(std::make_shared<const DyingGrants>());
  ending.number = next_number_++;
  for (const DyingPointer& piece : ending.pieces) ++ending.alive[piece->brick];
  ending.waiting.push_back(std::move(done));
  if (ending.stateid) clients_.emplace(*ending.stateid, ending.client);
  const Place place{ending.client, ending.inode, ending.number};
  return endings_.emplace(place, std::make_shared<Ending>(std::move(ending))).first->second;
}

bool Endings::over(const Ending& ending) const {
  if (ending.begun < ending.pieces.size()) return false;
  return std::ranges::none_of(
      ending.alive, [this](const auto& each) { return each.first == kNoBrick || usable_(each.first); });
}

void Endings::settle(Ending& ending) {
  if (!over(ending)) return;
  if (ending.stateid) clients_.erase(*std::exchange(ending.stateid, std::nullopt));
  for (const auto& done : std::exchange(ending.waiting, {})) done();
}

void Endings::begun(Ending& ending) {
  ++ending.begun;
  settle(ending);
}

void Endings::died(Ending& ending, const DyingGrants& piece) {
  const auto of_brick = ending.alive.find(piece.brick);
  if (--of_brick->second == 0) ending.alive.erase(of_brick);
  // Our caller has it still.
  if (ending.alive.empty()) endings_.erase({ending.client, ending.inode, ending.number});
  settle(ending);
}

bool Endings::has(uint64_t client, const StateidOther& stateid) const {
  const auto found = clients_.find(stateid);
  return found != clients_.end() && found->second == client;
}

bool Endings::by_force(uint64_t client, uint64_t inode) const {
  const auto end = endings_.upper_bound({client, inode, UINT64_MAX});
  return std::any_of(endings_.lower_bound({client, inode, 0}), end, [](const auto& each) {
    return each.second->cause == Ending::Cause::kByForce && each.second->stateid;
  });
}

void Endings::join(Ending& ending, const Join& join) {
  if (!over(ending)) ending.waiting.push_back(join.part());
}

void Endings::join(uint64_t client, uint64_t inode, const ByteRange& range, const Join& join) {
  const auto end = endings_.upper_bound({client, inode, UINT64_MAX});
  for (auto at = endings_.lower_bound({client, inode, 0}); at != end; ++at) {
    const auto overlaps = [&](const DyingPointer& piece) { return piece->hull.overlaps(range); };
    if (std::ranges::any_of(at->second->pieces, overlaps)) this->join(*at->second, join);
  }
}

void Endings::join(uint64_t client, const Join& join) {
  const auto end = endings_.upper_bound({client, UINT64_MAX, UINT64_MAX});
  for (auto at = endings_.lower_bound({client, 0, 0}); at != end; ++at) this->join(*at->second, join);
}

size_t Endings::brick_lost(BrickNumber brick, Place& last, size_t most) {
  size_t looked = 0;
  for (; looked < most; ++looked) {
    const auto next = endings_.upper_bound(last);
    if (next == endings_.end()) break;
    last = next->first;
    const EndingPointer ending = next->second;
    if (ending->alive.contains(brick)) settle(*ending);
  }
  return looked;
}

}  // namespace pnfsrdma::mds

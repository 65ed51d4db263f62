// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "server/mds/grants/layout_table.h"
#include "server/mds/state/stateid.h"
#include "shared/base/join.h"

namespace pnfsrdma::mds {

// What has left one client's layout of a file at once. The handles live on until their bricks have answered, piece by
// piece (grants/README.md).
struct Ending {
  enum class Cause { kReturned, kByForce };
  uint64_t client = 0;
  uint64_t inode = 0;
  std::optional<StateidOther> stateid;  // of the layout, where nothing of it is left
  Cause cause = Cause::kReturned;
  std::vector<DyingPointer> pieces;  // at least one
  size_t begun = 0;                  // of them: off the record, and with their brick
  size_t dead = 0;                   // likewise

  // Of Endings.
  uint64_t number = 0;
  std::map<BrickNumber, size_t> alive;  // pieces
  std::vector<std::function<void()>> waiting;

  // It may die in the turn of its brick's answer, which may come with many others.
  bool small() const;
  bool writes() const;
  bool all_dead() const { return dead == pieces.size(); }
};
using EndingPointer = std::shared_ptr<Ending>;

// All endings that bricks have not answered for, and who waits for them. Nobody is told that a layout was returned or
// revoked before its ending is over: every handle is dead, or its brick is away and nobody can tell. (Nothing
// happens to that brick's memory then, and it is not ready again before those handles are dead.) Control loop only.
class Endings {
 public:
  // Which bricks can answer.
  using Usable = std::function<bool(BrickNumber)>;
  // The order in which brick_lost() looks at them.
  struct Place {
    uint64_t client = 0;
    uint64_t inode = 0;
    uint64_t number = 0;
    auto operator<=>(const Place&) const = default;
  };

  explicit Endings(Usable usable) : usable_(std::move(usable)) {}

  // `done` when it is over.
  EndingPointer add(Ending ending, std::function<void()> done);
  // One more of its pieces is off the record, and its brick has been asked.
  void begun(Ending& ending);
  // A piece is dead, and the table knows.
  void died(Ending& ending, const DyingGrants& piece);

  // Whether this is the stateid of a layout whose ending is not over.
  bool has(uint64_t client, const StateidOther& stateid) const;
  // The client's layout of the file was taken from it, and that is not over.
  bool by_force(uint64_t client, uint64_t inode) const;
  // Those of the client's layout of the file that `range` overlaps take part; over ones do not.
  void join(uint64_t client, uint64_t inode, const ByteRange& range, const Join& join);
  // The same for all of the client's.
  void join(uint64_t client, const Join& join);
  // Those behind `last`, which moves on, that waited for no other brick are over. How many it has looked at: `most` at
  // the most.
  size_t brick_lost(BrickNumber brick, Place& last, size_t most);

 private:
  bool over(const Ending& ending) const;
  void settle(Ending& ending);
  void join(Ending& ending, const Join& join);

  Usable usable_;
  std::map<Place, EndingPointer> endings_;
  // By the stateid of what is not over.
  std::unordered_map<StateidOther, uint64_t, StateidOtherHash> clients_;
  uint64_t next_number_ = 1;
};

}  // namespace pnfsrdma::mds

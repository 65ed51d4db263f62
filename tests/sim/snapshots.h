// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/sync.h"
#include "tests/sim/dice.h"
#include "tests/sim/oracle.h"
#include "tests/sim/real_mds.h"

namespace pnfsrdma::sim {

class World;

// An administrator who takes and deletes snapshots of the real MDS's files, and what must hold of each: what it has at
// its time (Oracle::check_snapshot), and that it stays that. It looks at the copies of the metadata and at the
// memory of the bricks themselves, at once and without a call, and knows so what clients have to read.
class Snapshots {
 public:
  // `restart_mds`: in so long a time, if it is up then.
  using RestartMds = std::function<void(SteadyTime::duration)>;
  Snapshots(World& world, RestartMds restart_mds);
  ~Snapshots();

  // No more are taken or deleted. Returns when all is known of those that there are.
  void end();
  // While every server answers: one can be taken, in as many tries as the medium refuses.
  void take_when_well();
  // While every server answers, and when no client is left: all are deleted, and the files; then nothing is in use.
  void remove_all();
  // All that there are, now. The MDS is up.
  void check();

  // What a client is to read: a file of a snapshot, as it is now.
  struct Piece {
    mds::Extent extent;
    // What is there, and what would be after a loss of power: either is what it may become.
    std::vector<std::byte> now, durable;
  };
  struct File {
    uint64_t size = 0;
    std::vector<Piece> pieces;
  };
  struct Sight {
    uint32_t number = 0;
    std::string name;
    size_t file = 0;
    File content;
  };
  // None: there is no snapshot, or the MDS is down.
  std::optional<Sight> choose(Dice& dice);
  std::vector<Sight> all();
  // It was read since; an errno if not. `always`: every server answers.
  void judge(const Sight& sight, const Result<std::vector<std::byte>>& read, bool always) const;

  uint64_t taken = 0, failed = 0, removed = 0, unknown = 0;  // unknown: the MDS died before it answered

 private:
  enum class State { kTaking, kThere, kGoing, kGone };
  struct Known {
    std::string name;
    State state = State::kTaking;
    uint32_t number = 0;
    Oracle::Moment asked;
    SteadyTime answered;
    std::map<size_t, File> files;
  };

  void take_some();
  void remove_some();
  bool take();
  void remove(Known& snapshot);
  std::string new_name();
  void crash_while_it_works();
  // From what there is after a death of the MDS.
  void resolve(Known& snapshot);
  // Its first look at one that was taken.
  void begin(Known& snapshot, uint32_t number);
  void check_moment(const Known& snapshot);
  static std::vector<std::byte> bytes_of(const File& file, bool durable);
  void check(Known& snapshot);
  void check_piece(const Known& snapshot, size_t file, Piece& piece);
  const ServedBrick& brick_of(const mds::Extent& extent) const;
  void pause(uint64_t least, uint64_t most);
  Known* there(uint32_t number);
  std::string describe(const Known& snapshot) const;

  World& world_;
  const RestartMds restart_mds_;
  Dice dice_;
  bool ending_ = false;
  uint64_t last_name_ = 0;
  std::list<std::unique_ptr<Known>> known_;
  simulated::Thread taking_, removing_;
};

}  // namespace pnfsrdma::sim

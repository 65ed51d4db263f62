// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "server/mds/meta/inode.h"
#include "server/mds/meta/key_value.h"
#include "server/mds/meta/snapshot_keys.h"
#include "shared/base/clock.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// The values are on media.
enum class SnapshotState : uint32_t {
  kMaking = 1,  // its copy of the metadata is not complete: a start forgets it
  kReady = 2,
  kGoing = 3,  // nobody sees it any more; its memory is being freed
};
constexpr bool xdr_known(SnapshotState value) {
  return value >= SnapshotState::kMaking && value <= SnapshotState::kGoing;
}

// Which part of the schedule took it. The values are on media.
enum class SnapshotClass : uint32_t {
  kNone = 0,  // a person did
  kHourly = 1,
  kDaily = 2,
  kWeekly = 3,
  kMonthly = 4,
};
constexpr bool xdr_known(SnapshotClass value) {
  return value <= SnapshotClass::kMonthly;
}

struct Snapshot {
  SnapshotNumber number = 0;
  std::string name;
  WallTime created;
  SnapshotState state = SnapshotState::kMaking;
  SnapshotClass schedule = SnapshotClass::kNone;
  bool pinned = false;  // nothing deletes it

  bool is_ready() const { return state == SnapshotState::kReady; }
};

// A name of 1 to 255 bytes as of a file; not "." and "..", and without quotes and backslashes, as it stands in logs.
bool is_snapshot_name(std::string_view name);

// The one of that number, from its value in the store. EUCLEAN.
Result<Snapshot> read_snapshot(SnapshotNumber number, std::string_view value);

// Which snapshots there are. All in memory, and on record. Control loop only.
class Snapshots {
 public:
  // Blocks. At most 4096 may exist.
  static Result<Snapshots> open(KeyValueStore& store);
  static constexpr size_t kSnapshotsMax = 4096;
  bool is_full() const { return all_.size() >= kSnapshotsMax || last_ + 1 >= kSnapshotsEnd; }

  const std::map<SnapshotNumber, Snapshot>& all() const { return all_; }
  // Of any state. nullptr: there is none.
  const Snapshot* find(SnapshotNumber number) const;
  // Not of those that go.
  const Snapshot* find(std::string_view name) const;
  // Those that people see.
  bool has_ready() const;
  // A number that grows whenever one gets or loses its place among those, over restarts too.
  uint64_t changes() const;

  // The last number given: what is born and what dies gets it.
  SnapshotNumber now() const { return last_; }
  // The highest number of a snapshot that there is, of any state; 0: none. What was born before it belongs to a
  // snapshot, too.
  SnapshotNumber newest() const { return all_.empty() ? 0 : all_.rbegin()->first; }
  bool in_a_snapshot(SnapshotNumber born) const { return born < newest(); }
  // Whether a snapshot has what was born and died then.
  bool holds(SnapshotNumber born, SnapshotNumber died) const;

  // Each commits its record (kNamespace) and changes what is in memory with it.
  // A new one, kMaking. EINVAL (no name), EEXIST, EMFILE (kSnapshotsMax), EAGAIN, EIO.
  Result<SnapshotNumber> begin(std::string_view name, const WallTime& created,
                               SnapshotClass schedule = SnapshotClass::kNone);
  Result<> set_state(SnapshotNumber number, SnapshotState state);
  Result<> set_pinned(SnapshotNumber number, bool pinned);
  // Its record goes, and with it its name; it holds memory until forget(), which is for when that is durable: a crash
  // would bring it back.
  Result<> erase(SnapshotNumber number);
  void forget(SnapshotNumber number) { all_.erase(number); }

 private:
  explicit Snapshots(KeyValueStore& store) : store_(&store) {}
  // Of one that is there. A change that makes room is committed on a full disk, too.
  Result<> change(const Snapshot& changed, bool makes_room);

  KeyValueStore* store_;
  std::map<SnapshotNumber, Snapshot> all_;
  SnapshotNumber last_ = 0;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/mds/meta/brick_records.h"
#include "server/mds/meta/space.h"
#include "server/mds/meta/used_space_reader.h"
#include "shared/base/clock.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// The bricks this server uses: their records, and the address space of each. Owns the Spaces; a brick's stays
// where it is until the brick is removed. Control loop only.
class BrickList {
 public:
  // Reads all extents, and writes nothing. Errors as of read_used_space().
  static Result<std::unique_ptr<BrickList>> open(KeyValueStore& store, const Clock& clock);
  // The same beside the loop, which serves meanwhile: space is not known() until all extents are read, as they were at
  // this call. `failed` once if they cannot be read: end then.
  static Result<std::unique_ptr<BrickList>> open(KeyValueStore& store, const Clock& clock, EventLoop& loop,
                                                 std::function<void(const Error&)> failed);
  BrickList(const BrickList&) = delete;
  BrickList& operator=(const BrickList&) = delete;

  // The configuration's addresses. A first start takes them as they are; later the stored list counts, but
  // one configured brick whose address is no longer named has moved to the one address that is new. Returns
  // addresses that are named and not in use: they must be added by an administrator.
  Result<std::vector<std::string>> configure(const std::vector<std::string>& addresses);

  // A new brick, not claimed yet. EEXIST: the address is in use.
  Result<BrickNumber> add(const std::string& address, bool configured);
  // Replaces what may change: uuid, name, address, block count, durability, leaving. EEXIST: another brick
  // has that uuid, name or address. The sequence is for when_synced().
  Result<Sequence> update(const BrickRecord& record);
  // The brick at this address was connected, by TLS or without it. Harmless for one that is not in the list.
  Result<> note_tls(const std::string& address, bool tls);
  // Whether the brick at this address was connected by TLS last.
  bool tls_noted(const std::string& address) const;
  // What the brick says its verifier is now. When that is another one than it was, verifier_changes() grows.
  // None: nothing has to be stored. The sequence is for when_synced().
  Result<std::optional<Sequence>> heard_verifier(BrickNumber number, const BrickVerifier& verifier);
  // How often that was so, by all starts of this server.
  uint64_t verifier_changes() const { return verifier_changes_; }
  // EBUSY: files have data on it.
  Result<Sequence> remove(BrickNumber number);

  // Calls it once the space of all bricks is known; at once if it is.
  void when_known(std::function<void()> done);
  // For a shutdown: before the store is closed.
  void stop_reading() { reader_.reset(); }

  std::vector<BrickNumber> numbers() const;
  const BrickRecord* find(BrickNumber number) const;
  // The brick must exist.
  Space& space(BrickNumber number);
  const Space& space(BrickNumber number) const;
  // On which brick an address is; kNoBrick: on none.
  BrickNumber brick_of(uint64_t logical) const;

 private:
  struct Member {
    BrickRecord record;
    std::unique_ptr<Space> space;
    std::optional<BrickVerifier> verifier{};  // the last one heard
  };

  BrickList(KeyValueStore& store, const Clock& clock) : store_(store), clock_(clock), records_(store) {}
  Result<> read();
  void use(UsedSpace used);
  void give_back();
  void enter(const BrickRecord& record);
  Result<uint32_t> next_zone(BrickNumber number);
  Result<> check_unique(const BrickRecord& record) const;
  const BrickRecord* find_at(const std::string& address) const;

  KeyValueStore& store_;
  const Clock& clock_;
  BrickRecords records_;
  std::map<BrickNumber, Member> members_;
  std::vector<BrickNumber> by_zone_;
  uint64_t verifier_changes_ = 0;
  std::vector<std::function<void()>> waiting_;  // until all space is known
  EventLoop* loop_ = nullptr;                   // while it is read beside the loop
  std::unique_ptr<UsedSpaceReader> reader_;
  Lifetime lifetime_;
};

}  // namespace pnfsrdma::mds

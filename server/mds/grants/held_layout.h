// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "server/mds/grants/range_set.h"
#include "server/mds/state/activity.h"
#include "server/mds/state/recaller.h"
#include "shared/base/clock.h"
#include "shared/nfs4/pnfs_operations.h"

namespace pnfsrdma::mds {

// One grant of a brick to one client, as part of a file's layout: a value.
struct HeldGrant {
  uint64_t grant = 0;  // the brick's number
  ByteRange file;      // which bytes of the file it reaches
  uint64_t logical = 0;
  bool writable = false;
  uint32_t connection = 0;  // number of the client's connection to the brick; handle and address are of it
  uint32_t handle = 0;
  uint64_t address = 0;
  RangeSet held;  // what of `file` the client has not returned yet; the handle dies with its last byte
  bool confirmed = true;  // false: a record of an earlier run has it, its brick has not yet said so

  // Bricks number their grants each for itself.
  bool same(const HeldGrant& other) const { return grant == other.grant && logical == other.logical; }
  ByteRange memory() const { return {logical, logical + file.length()}; }
};

using nfs4::IoMode;

// All that one client holds of one file under one layout stateid (RFC 8881, 12.5.3). A value without I/O: it
// decides, the caller withdraws. The handle of a grant dies when the last byte of it was returned, not
// earlier: a client that gives back half a segment can still reach it, and is told so by nobody; blocks are
// freed by whole grants only.
class HeldLayout {
 public:
  HeldLayout() = default;
  HeldLayout(uint64_t client, uint64_t inode, const std::array<std::byte, 12>& other)
      : client_(client), inode_(inode), stateid_{0, other} {}

  uint64_t client() const { return client_; }
  uint64_t inode() const { return inode_; }
  const LayoutStateid& stateid() const { return stateid_; }
  // How the client named the file when it asked last: recalls name it likewise.
  uint16_t export_id() const { return export_id_; }
  uint64_t generation() const { return generation_; }
  // Which change of the table's layouts it last was: LayoutTable::advance().
  uint64_t version() const { return version_; }
  void set_version(uint64_t version) { version_ = version; }
  // When the layout was first given.
  SteadyTime granted() const { return granted_; }
  void set_granted(SteadyTime when) { granted_ = when; }
  // What its client says it has read and written by it.
  const ReportedIo& reported() const { return reported_; }
  void report(const ReportedIo& more) { reported_ += more; }
  bool old_handle() const { return old_handle_; }
  void set_handle(uint16_t export_id, uint64_t generation, bool old) {
    export_id_ = export_id;
    generation_ = generation;
    old_handle_ = old;
  }

  // What lies behind the end of the file is this client's alone, it was told so under this number; 0: it is not.
  uint64_t end_token() const { return end_token_; }
  void set_end_token(uint64_t token) { end_token_ = token; }

  // The next seqid, past 0 when it wraps: on every LAYOUTGET reply, LAYOUTRETURN reply and CB_LAYOUTRECALL.
  const LayoutStateid& advance();
  // The same for a recall: the newest there was.
  const LayoutStateid& recall();
  // Seqid of the newest recall; 0: there was none.
  uint32_t newest_recall() const { return newest_recall_; }
  // As an earlier run left it. Whether its newest recall was complete is not known: it counts as that.
  void resume(uint32_t seqid, uint32_t newest_recall, uint64_t end_token);
  // RFC 8881, 12.5.3: not 0, not newer than the newest, not older than `window` steps. BAD_STATEID,
  // OLD_STATEID.
  nfs4::Status check_seqid(uint32_t seqid, uint32_t window) const;
  // A recall that was sent under `seqid` is complete: whoever still commits under an older one has lost
  // (12.5.5.2.1).
  void recall_completed(uint32_t seqid) { completed_recall_ = seqid; }
  bool older_than_completed_recall(uint32_t seqid) const;

  void add_grant(HeldGrant grant);
  // What of it is new.
  std::vector<ByteRange> add_hole(const ByteRange& range);
  // Neither was told to the client. The grants leave the layout: withdraw them.
  void take_back_hole(const ByteRange& range) { holes_.remove(range); }
  std::vector<HeldGrant> take_back(std::span<const HeldGrant> grants);

  // The grant of exactly this mode that reaches `offset`, none of it returned.
  const HeldGrant* at(uint64_t offset, IoMode mode) const;
  // What of `range` no such grant reaches, in order.
  std::vector<ByteRange> gaps(const ByteRange& range, IoMode mode) const;
  // Whether read-write grants, all or part of them still held, reach every byte.
  bool may_write(const ByteRange& range) const;
  // The hole held at `offset`, to its end.
  std::optional<ByteRange> hole_at(uint64_t offset) const;

  bool holds(const ByteRange& range, IoMode mode) const;
  // Read-write grants some byte of which lies at or behind `offset`: known, not looked for.
  bool writes_past(uint64_t offset) const { return !reaches_.empty() && reaches_.back().writable > offset; }
  // `range` grown until it cuts no grant in two.
  ByteRange rounded_out(ByteRange range) const;

  // The client gave `range` back. Grants that have died leave the layout: withdraw them.
  std::vector<HeldGrant> give_back(const ByteRange& range, IoMode mode);
  // Whether the client reads zeros from a hole somewhere in `range`.
  bool holds_hole(const ByteRange& range) const { return holes_.overlaps(range); }
  std::vector<ByteRange> holes_within(const ByteRange& range) const { return holes_.within(range); }
  bool writes() const { return writes_past(0); }

  // Calls `visit` with each grant that is not confirmed yet.
  void for_each_unconfirmed(const std::function<void(HeldGrant&)>& visit);
  // This very grant as the layout has it; null: it is not part of it any more.
  const HeldGrant* find(const HeldGrant& grant) const;
  // The grants that overlap `range`.
  std::vector<const HeldGrant*> grants_in(const ByteRange& range) const;
  const RangeSet& holes() const { return holes_; }

  bool empty() const { return grants_.empty() && holes_.empty(); }
  const std::vector<HeldGrant>& grants() const { return grants_; }

 private:
  // Behind a grant and all in front of it: where the last of them ends, and the last one to write by.
  struct Reach {
    uint64_t any = 0;
    uint64_t writable = 0;
    bool operator==(const Reach&) const = default;
  };

  // The grants that may overlap `range`, as places in grants_: found by halving, however many there are. Where none
  // overlaps another one, it is exactly those.
  std::pair<size_t, size_t> near(const ByteRange& range) const;
  std::span<const HeldGrant> grants_near(const ByteRange& range) const;
  // Takes those of the places out for which that is so.
  std::vector<HeldGrant> take_out(std::pair<size_t, size_t> places,
                                  const std::function<bool(HeldGrant&)>& goes);
  // Behind a change of the grants from that place on, but not of those behind `last`.
  void renew_reaches(size_t first, size_t last);

  uint64_t client_ = 0;
  uint64_t inode_ = 0;
  LayoutStateid stateid_;
  uint16_t export_id_ = 0;
  uint64_t generation_ = 0;
  bool old_handle_ = false;
  ReportedIo reported_;
  uint64_t end_token_ = 0;
  uint64_t version_ = 0;
  SteadyTime granted_;
  std::optional<uint32_t> completed_recall_;
  uint32_t newest_recall_ = 0;
  std::vector<HeldGrant> grants_;  // by file offset
  std::vector<Reach> reaches_;     // one for each
  RangeSet holes_;                 // read layouts only
};

}  // namespace pnfsrdma::mds

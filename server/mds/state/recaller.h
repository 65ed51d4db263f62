// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace pnfsrdma::mds {

// A layout stateid (RFC 8881, 12.5.2). The first byte of `other` is kLayoutStateidTag in every one of them,
// so that the state module can tell them from its own without a look-up.
inline constexpr std::byte kLayoutStateidTag{0x4C};
struct LayoutStateid {
  uint32_t seqid = 0;
  std::array<std::byte, 12> other{};
  bool operator==(const LayoutStateid&) const = default;
};

// What a client said to CB_LAYOUTRECALL, or that it said nothing.
enum class RecallAnswer : uint8_t {
  kAccepted,    // NFS4_OK: LAYOUTRETURNs will follow
  kNoMatching,  // NFS4ERR_NOMATCHING_LAYOUT: it holds nothing there; the recall is complete
  kDelay,       // NFS4ERR_DELAY: ask again
  kUnreachable  // no backchannel, no answer, or an error: only revocation ends it
};

struct LayoutRecall {
  uint64_t client = 0;
  uint64_t inode = 0;
  uint64_t generation = 0;  // of the inode
  uint16_t export_id = 0;   // of the filehandle the client got the layout by
  bool old_handle = false;  // that was of version 1
  uint32_t iomode = 3;      // LAYOUTIOMODE4_ANY
  bool changed = false;
  uint64_t offset = 0;
  uint64_t length = 0;
  LayoutStateid stateid;
};

// How layouts reach the client that holds them: the state module's callback channel and lease table. Control
// loop only.
class LayoutRecaller {
 public:
  virtual ~LayoutRecaller() = default;

  // Sends CB_LAYOUTRECALL (type LAYOUT4_PMEM, LAYOUTRECALL4_FILE); `done` is called once, in the loop, never
  // from inside.
  virtual void recall_layout(const LayoutRecall& recall, std::function<void(RecallAnswer)> done) = 0;
  // CB_RECALL_ANY: please keep at most `keep` layouts. Fire and forget.
  virtual void recall_any(uint64_t client, uint32_t keep) = 0;
  // A layout was revoked: SEQ4_STATUS_RECALLABLE_STATE_REVOKED is set for the client until every revoked
  // stateid was freed (Layouts::free_stateid()).
  virtual void layouts_revoked(uint64_t client) = 0;
  virtual void revoked_layouts_freed(uint64_t client) = 0;
  // Whether anybody has the file open; an orphan is freed only when nobody has.
  virtual bool is_open(uint64_t inode) const = 0;
  // Whether this client has. Default: whether anybody has.
  virtual bool is_open_by(uint64_t inode, uint64_t client) const {
    static_cast<void>(client);
    return is_open(inode);
  }
  // Whether anybody else has the file open for writing. Default: as if.
  virtual bool is_written_by_others(uint64_t inode, uint64_t client) const {
    static_cast<void>(inode);
    static_cast<void>(client);
    return true;
  }
  // Sum over the client's sessions of (ca_maxoperations - 1): how far a layout stateid's seqid may lag
  // (12.5.3).
  virtual uint32_t stateid_window(uint64_t client) const = 0;
};

}  // namespace pnfsrdma::mds

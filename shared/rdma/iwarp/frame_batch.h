// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "shared/rdma/iwarp/stream.h"
#include "shared/rdma/iwarp/wire_format.h"
#include "shared/rdma/work_request.h"

namespace pnfsrdma::rdma::iwarp {

// FPDUs on their way to the socket: headers and trailers are built here, payloads are sent from where they
// lie. One batch is one sendmsg(2) unless the socket is full; then the rest goes later. Nothing is allocated
// per frame. No payload is copied, but under CRC what others may store to (Registration::changes_under_way()) and
// READ responses (Carries::kReads): checksum and bytes are of one look at them. Belongs to whoever is sending.
class FrameBatch {
 public:
  explicit FrameBatch(bool crc);

  bool empty() const { return piece_count_ == 0; }
  // Whether one more frame of any legal size fits.
  bool has_room() const;

  // Where the header of the next frame is encoded to (at most kTerminateSizeMax bytes).
  std::byte* header() { return scratch_.data() + scratch_used_; }
  // Closes the frame whose header of `header_size` bytes was just encoded. False when a payload's registration is
  // dead; the frame is then not added.
  // kReads: what a peer reads others may store to under another registration, whatever rights this one gives.
  enum class Carries { kOwn, kReads };
  bool add_frame(size_t header_size, std::span<const BoundSlice> payload, Carries what = Carries::kOwn);

  enum class Sent { kAll, kSocketFull, kRegistrationDead, kFailed };
  // Sends what is left. kRegistrationDead: memory in it may no longer be read; only frames in front of it
  // went out.
  Sent send(Stream& stream);
  // Whether the bytes sent so far end with a whole frame.
  bool at_frame_boundary() const;
  // Forgets everything, sent or not.
  void clear();

 private:
  static constexpr size_t kFrames = 64;
  static constexpr size_t kPieces = 256;
  static constexpr size_t kBytes = (1 << 20) + (128 << 10);
  static constexpr size_t kBounce = 4 * kSegmentPayload;

  static constexpr uint32_t kNone = UINT32_MAX;

  void add_scratch(size_t count);
  bool add_payload(const BoundSlice& slice, bool copy, uint32_t* crc);
  uint32_t remember(const std::shared_ptr<Registration>& registration);
  bool pin_from(uint32_t first);
  void unpin_from(uint32_t first, size_t end);
  void consume(size_t count);

  const bool crc_;
  std::array<std::byte, kFrames * 128> scratch_;
  size_t scratch_used_ = 0;
  std::vector<std::byte> bounce_;  // kBounce bytes when CRC is on
  size_t bounce_used_ = 0;
  std::array<iovec, kPieces> pieces_;
  std::array<uint32_t, kPieces> piece_registration_;
  size_t piece_count_ = 0;
  size_t next_piece_ = 0;
  std::array<std::shared_ptr<Registration>, kPieces> registrations_;
  size_t registration_count_ = 0;
  std::array<uint64_t, kFrames> frame_ends_;  // in bytes from the start of the batch
  size_t frame_count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace pnfsrdma::rdma::iwarp

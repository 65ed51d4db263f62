// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/frame_batch.h"

#include <algorithm>
#include <cerrno>

#include "shared/base/crc32c.h"

namespace pnfsrdma::rdma::iwarp {

FrameBatch::FrameBatch(bool crc) : crc_(crc), bounce_(crc ? kBounce : 0) {}

bool FrameBatch::has_room() const {
  return frame_count_ < kFrames && piece_count_ + kGatherMax + 2 <= kPieces && bytes_ < kBytes - kFrameMax &&
         bounce_.size() - bounce_used_ >= (crc_ ? kSegmentPayload : 0);
}

// Appends `count` bytes that already stand at the end of the scratch; runs of them become one piece.
void FrameBatch::add_scratch(size_t count) {
  std::byte* at = scratch_.data() + scratch_used_;
  scratch_used_ += count;
  bytes_ += count;
  if (piece_count_ > 0 && piece_registration_[piece_count_ - 1] == kNone) {
    iovec& last = pieces_[piece_count_ - 1];
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == at) {
      last.iov_len += count;
      return;
    }
  }
  pieces_[piece_count_] = {at, count};
  piece_registration_[piece_count_++] = kNone;
}

uint32_t FrameBatch::remember(const std::shared_ptr<Registration>& registration) {
  if (registration_count_ == 0 || registrations_[registration_count_ - 1] != registration) {
    registrations_[registration_count_++] = registration;
  }
  return static_cast<uint32_t>(registration_count_ - 1);
}

bool FrameBatch::add_payload(const BoundSlice& slice, bool copy, uint32_t* crc) {
  if (slice.length == 0) return true;
  iovec bytes{slice.address, slice.length};
  uint32_t registration = kNone;
  if (crc_) {
    Pin pin(*slice.registration);
    if (!pin) return false;
    if (copy) {
      std::byte* to = bounce_.data() + bounce_used_;
      std::memcpy(to, slice.address, slice.length);
      bounce_used_ += slice.length;
      bytes.iov_base = to;
    }
    *crc = crc32c({static_cast<std::byte*>(bytes.iov_base), slice.length}, *crc);
  }
  if (!copy) registration = remember(slice.registration);
  pieces_[piece_count_] = bytes;
  piece_registration_[piece_count_++] = registration;
  bytes_ += slice.length;
  return true;
}

bool FrameBatch::add_frame(size_t header_size, std::span<const BoundSlice> payload, Carries what) {
  const size_t pieces = piece_count_, scratch = scratch_used_;
  const uint64_t bytes = bytes_;
  const size_t merged = piece_count_ > 0 ? pieces_[piece_count_ - 1].iov_len : 0;
  size_t ulpdu = load_big_endian<uint16_t>(header());
  uint32_t crc = crc_ ? crc32c({header(), header_size}) : 0;
  add_scratch(header_size);
  for (const BoundSlice& slice : payload) {
    const bool copy = crc_ && (what == Carries::kReads ||
                               (slice.registration != nullptr && slice.registration->changes_under_way()));
    if (add_payload(slice, copy, &crc)) continue;
    piece_count_ = pieces;
    scratch_used_ = scratch;
    bytes_ = bytes;
    if (pieces > 0) pieces_[pieces - 1].iov_len = merged;
    return false;
  }
  // Padding and CRC in one go; the CRC goes out least significant byte first and is zero when not in use.
  std::byte* trailer = header();
  size_t padding = padding_of(ulpdu);
  std::fill_n(trailer, padding, std::byte{0});
  if (crc_) crc = crc32c({trailer, padding}, crc);
  for (size_t i = 0; i < kCrcSize; ++i) trailer[padding + i] = static_cast<std::byte>(crc >> (8 * i));
  add_scratch(padding + kCrcSize);
  frame_ends_[frame_count_++] = bytes_;
  return true;
}

bool FrameBatch::pin_from(uint32_t first) {
  for (size_t i = first; i < registration_count_; ++i) {
    if (registrations_[i]->pin()) continue;
    unpin_from(first, i);
    return false;
  }
  return true;
}

void FrameBatch::unpin_from(uint32_t first, size_t end) {
  for (size_t i = first; i < end; ++i) registrations_[i]->unpin();
}

void FrameBatch::consume(size_t count) {
  sent_ += count;
  while (count > 0) {
    iovec& piece = pieces_[next_piece_];
    size_t step = std::min(count, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + step;
    piece.iov_len -= step;
    count -= step;
    if (piece.iov_len == 0) ++next_piece_;
  }
}

FrameBatch::Sent FrameBatch::send(Stream& stream) {
  while (next_piece_ < piece_count_) {
    // The first registration that unsent pieces still need; pieces are in the order of registrations_.
    auto first = static_cast<uint32_t>(registration_count_);
    for (size_t i = next_piece_; i < piece_count_ && first == registration_count_; ++i) {
      if (piece_registration_[i] != kNone) first = piece_registration_[i];
    }
    if (!pin_from(first)) return Sent::kRegistrationDead;
    ssize_t count = stream.send({pieces_.data() + next_piece_, piece_count_ - next_piece_});
    unpin_from(first, registration_count_);
    if (count == -EAGAIN) return Sent::kSocketFull;
    if (count <= 0) return Sent::kFailed;
    consume(static_cast<size_t>(count));
  }
  return Sent::kAll;
}

bool FrameBatch::at_frame_boundary() const {
  if (sent_ == 0) return true;
  return std::binary_search(frame_ends_.begin(), frame_ends_.begin() + frame_count_, sent_);
}

void FrameBatch::clear() {
  for (size_t i = 0; i < registration_count_; ++i) registrations_[i].reset();
  scratch_used_ = bounce_used_ = piece_count_ = next_piece_ = registration_count_ = frame_count_ = 0;
  bytes_ = sent_ = 0;
}

}  // namespace pnfsrdma::rdma::iwarp

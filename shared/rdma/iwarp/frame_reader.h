// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "shared/rdma/iwarp/placement.h"
#include "shared/rdma/iwarp/stream.h"

namespace pnfsrdma::rdma::iwarp {

// Cuts the byte stream into FPDUs, checks framing and CRC, and moves payloads to their place.
//
// CRC off: a large payload is received straight into its target; only headers, small frames and the first
// bytes of a large one pass through the staging buffer. CRC on: stage, check, copy. Belongs to the thread
// that polls.
class FrameReader {
 public:
  FrameReader(bool crc, SegmentHandler& handler);

  // What the last call of receive() saw.
  enum class Input {
    kProgress,  // bytes came
    kNothing,   // none there (or none before the deadline)
    kEnd,       // the peer has finished sending, orderly or by a reset
    kError,     // the peer broke the protocol: verdict() and failed_header() say how
  };
  // One system call, then everything that can be processed with what it brought.
  Input receive(Stream& stream);
  // The same, blocking until `deadline` for the first byte.
  Input receive_blocking(Stream& stream, SteadyTime deadline);

  // In the middle of a large payload: receive() will move it without a copy, receive_blocking() would copy.
  bool wants_direct() const { return !crc_ && remaining_ >= kDirect; }
  // Receives and forgets: the stream is broken, nothing of it is looked at any more. Never blocks.
  Input discard(Stream& stream);

  TerminateCode verdict() const { return verdict_; }
  // The header of the segment at fault, length word first; empty when it never came whole.
  ByteSpan failed_header() const { return {failed_header_.data(), failed_header_size_}; }

 private:
  static constexpr size_t kStaging = 128 << 10;
  static_assert(kStaging >= kFrameMax);
  // Payloads from here on go straight to their target.
  static constexpr uint32_t kDirect = 8192;
  // Room behind a direct payload for its trailer and the next header.
  static constexpr size_t kDirectTail = 64;
  static constexpr size_t kSmallRead = 4096;

  ByteSpan staged() const { return {staging_.data() + begin_, end_ - begin_}; }
  MutableByteSpan staging_room();
  Input receive_direct(Stream& stream);
  Input took(ssize_t count);
  bool process();
  bool place_staged();
  // False when more bytes are needed or the stream is broken (broken_).
  bool start_frame();
  Verdict check_lengths(const Segment& segment, size_t ulpdu) const;
  Verdict dispatch(const Segment& segment, size_t frame);
  bool give_up(TerminateCode code);

  const bool crc_;
  SegmentHandler& handler_;
  std::vector<std::byte> staging_;
  size_t begin_ = 0;
  size_t end_ = 0;

  Segment segment_;
  Placement placement_;
  bool in_segment_ = false;  // its header was accepted and it has not ended
  uint32_t remaining_ = 0;   // payload still to come
  size_t trailer_ = 0;       // padding and CRC still to come
  bool large_ = false;       // the last payload was: keep the next read small, so that little is copied
  bool broken_ = false;
  TerminateCode verdict_;
  std::array<std::byte, kReadRequestSize> failed_header_;
  size_t failed_header_size_ = 0;
};

}  // namespace pnfsrdma::rdma::iwarp

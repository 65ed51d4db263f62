// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/frame_reader.h"

#include <algorithm>
#include <cerrno>

#include "shared/base/crc32c.h"
#include "shared/rdma/whole_store.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

// Messages to the protocol itself arrive whole in one segment; the longest is a Terminate.
bool is_control(Message message) {
  return message == Message::kReadRequest || message == Message::kTerminate ||
         message == Message::kFlushRequest || message == Message::kFlushResponse;
}

}  // namespace

FrameReader::FrameReader(bool crc, SegmentHandler& handler)
    : crc_(crc), handler_(handler), staging_(kStaging) {}

MutableByteSpan FrameReader::staging_room() {
  if (begin_ == end_) begin_ = end_ = 0;
  // Frames are parsed in place, so one that started late moves to the front when its end would not fit.
  if (staging_.size() - begin_ < kFrameMax) {
    std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  size_t room = staging_.size() - end_;
  if (!crc_ && (large_ || remaining_ >= kDirect)) room = std::min(room, kSmallRead);
  return {staging_.data() + end_, room};
}

FrameReader::Input FrameReader::took(ssize_t count) {
  if (count == -EAGAIN) return Input::kNothing;
  if (count <= 0) return Input::kEnd;
  return process() ? Input::kProgress : Input::kError;
}

FrameReader::Input FrameReader::receive(Stream& stream) {
  if (wants_direct()) return receive_direct(stream);
  MutableByteSpan room = staging_room();
  iovec into{room.data(), room.size()};
  ssize_t count = stream.receive({&into, 1});
  if (count > 0) end_ += static_cast<size_t>(count);
  return took(count);
}

FrameReader::Input FrameReader::receive_blocking(Stream& stream, SteadyTime deadline) {
  // Never straight into the target: a pin must not outlast a wait.
  MutableByteSpan room = staging_room();
  ssize_t count = stream.receive_blocking(room, deadline);
  if (count > 0) end_ += static_cast<size_t>(count);
  return took(count);
}

// One recvmsg(2) for the rest of the payload and, behind it, the trailer and the next header. No copy.
FrameReader::Input FrameReader::receive_direct(Stream& stream) {
  CHECK(begin_ == end_);
  begin_ = end_ = 0;
  iovec into[2] = {{placement_.address, remaining_}, {staging_.data(), kDirectTail}};
  ssize_t count;
  {
    Pin pin(*placement_.registration);
    if (!pin) return give_up(kTaggedInvalidStag) ? Input::kProgress : Input::kError;
    count = stream.receive(into);
  }
  if (count > 0) {
    auto placed = static_cast<uint32_t>(std::min<size_t>(static_cast<size_t>(count), remaining_));
    remaining_ -= placed;
    placement_.address += placed;
    end_ = static_cast<size_t>(count) - placed;
  }
  return took(count);
}

FrameReader::Input FrameReader::discard(Stream& stream) {
  iovec into{staging_.data(), staging_.size()};
  ssize_t count = stream.receive({&into, 1});
  if (count == -EAGAIN) return Input::kNothing;
  return count <= 0 ? Input::kEnd : Input::kProgress;
}

bool FrameReader::give_up(TerminateCode code) {
  verdict_ = code;
  broken_ = true;
  return false;
}

// Consumes what is staged as far as it goes. False when the peer broke the protocol.
bool FrameReader::process() {
  for (;;) {
    if (in_segment_) {
      if (!place_staged()) return false;
      if (remaining_ > 0) return true;
      size_t step = std::min(trailer_, end_ - begin_);
      begin_ += step;
      trailer_ -= step;
      if (trailer_ > 0) return true;
      in_segment_ = false;
      placement_.registration.reset();
      if (Verdict verdict = handler_.end_segment(segment_)) return give_up(*verdict);
    }
    if (!start_frame()) return !broken_;
  }
}

// Eight aligned bytes are placed when all of them have come, by one store: that makes a WRITE of them atomic.
bool FrameReader::place_staged() {
  auto step = static_cast<uint32_t>(std::min<size_t>(remaining_, end_ - begin_));
  const bool whole = is_whole(placement_.address, segment_.payload);
  if (step == 0 || (whole && step < remaining_)) return true;
  Pin pin(*placement_.registration);
  if (!pin) return give_up(kTaggedInvalidStag);
  if (whole) {
    uint64_t value;
    std::memcpy(&value, staging_.data() + begin_, sizeof(value));
    store_whole(placement_.address, value);
  } else {
    std::memcpy(placement_.address, staging_.data() + begin_, step);
  }
  placement_.address += step;
  begin_ += step;
  remaining_ -= step;
  return true;
}

// Parses one frame's header when enough of it is staged; control messages are handled right away. True: go
// on.
bool FrameReader::start_frame() {
  ByteSpan bytes = staged();
  if (bytes.size() < 4) return false;
  const size_t ulpdu = load_big_endian<uint16_t>(bytes.data());
  const size_t frame = kLengthSize + ulpdu + padding_of(ulpdu) + kCrcSize;
  failed_header_size_ = 0;
  if (crc_) {
    if (bytes.size() < frame) return false;
    uint32_t expected = 0;
    for (size_t i = kCrcSize; i-- > 0;) {
      expected = expected << 8 | std::to_integer<uint32_t>(bytes[frame - kCrcSize + i]);
    }
    if (crc32c(bytes.first(frame - kCrcSize)) != expected) return give_up(kCrcError);
  }
  bool tagged = (std::to_integer<uint8_t>(bytes[2]) & kTaggedBit) != 0;
  const size_t header = tagged ? kTaggedHeader : kUntaggedHeader;
  if (kLengthSize + ulpdu < header) return give_up(kFrameLength);
  if (bytes.size() < header) return false;
  failed_header_size_ = std::min({bytes.size(), failed_header_.size(), kLengthSize + ulpdu});
  std::copy_n(bytes.begin(), failed_header_size_, failed_header_.begin());

  auto versions = std::to_integer<uint8_t>(bytes[2]) & kDdpVersionMask;
  if (versions != kDdpVersion) return give_up(tagged ? kTaggedVersion : kUntaggedVersion);
  if ((std::to_integer<uint8_t>(bytes[3]) & kRdmapVersionMask) != kRdmapVersion) {
    return give_up(kRdmapVersionError);
  }
  Segment segment = decode_segment(bytes.data());
  if (!tagged && segment.queue >= kQueueCount) return give_up(kUntaggedQueue);
  if (!tagged && is_control(segment.message)) {
    if (Verdict verdict = check_lengths(segment, ulpdu)) return give_up(*verdict);
    if (bytes.size() < frame) return false;
    begin_ += frame;
    Verdict verdict = handler_.control_segment(segment, bytes.subspan(header, segment.payload));
    if (verdict) return give_up(*verdict);
    return true;
  }
  if (Verdict verdict = handler_.begin_segment(segment, placement_)) return give_up(*verdict);
  CHECK(segment.payload == 0 || placement_.registration != nullptr);
  segment_ = segment;
  remaining_ = segment.payload;
  trailer_ = padding_of(ulpdu) + kCrcSize;
  large_ = segment.payload >= kDirect;
  in_segment_ = true;
  begin_ += header;
  return true;
}

Verdict FrameReader::check_lengths(const Segment& segment, size_t ulpdu) const {
  const size_t size = kLengthSize + ulpdu;
  size_t wanted_min = kUntaggedHeader, wanted_max = kUntaggedHeader;
  switch (segment.message) {
    case Message::kReadRequest:
      wanted_min = wanted_max = kReadRequestSize;
      break;
    case Message::kFlushRequest:
      wanted_min = wanted_max = kFlushRequestSize;
      break;
    case Message::kTerminate:
      wanted_min = kUntaggedHeader + 4;
      wanted_max = kTerminateSizeMax + 64;  // leniently: other stacks append more
      break;
    default:
      break;
  }
  if (size < wanted_min) return kFrameLength;
  if (size > wanted_max) return kUntaggedTooLong;
  if (!segment.last || segment.message_offset != 0) return kUntaggedOffset;
  return {};
}

}  // namespace pnfsrdma::rdma::iwarp

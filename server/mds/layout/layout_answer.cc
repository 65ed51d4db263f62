// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/layout_answer.h"

#include <optional>
#include <utility>
#include <vector>

#include "shared/xdr/codec.h"

namespace pnfsrdma::mds {

namespace {

// Bytes on the wire: LayoutGetResult without layouts, a layout4 without segments, one segment (README of
// shared/nfs4).
constexpr uint32_t kResultBytes = 4 + 16 + 4;
constexpr uint32_t kLayoutBytes = 8 + 8 + 4 + 4 + 4 + 4 + 4;
constexpr uint32_t kSegmentBytes = 16 + 8 + 8 + 2 * (8 + 4 + 8);

// One layout4 being put together.
struct Part {
  nfs4::LayoutBody body;
  uint64_t offset = 0;
  uint64_t end = 0;
};

nfs4::Layout finish(Part part, IoMode mode) {
  nfs4::Layout layout{.offset = part.offset, .length = part.end - part.offset, .io_mode = mode};
  layout.content.layout_type = nfs4::kLayoutTypePmem;
  xdr::Encoder encoder(layout.content.body);
  xdr::encode(encoder, part.body);
  return layout;
}

nfs4::Segment segment_of(const HeldGrant& grant, const nfs4::DeviceId& device) {
  const nfs4::Target target{grant.grant, grant.handle, grant.address};
  return {device, grant.file.begin, grant.file.length(), target, grant.writable ? target : nfs4::Target{}};
}

}  // namespace

LayoutAnswer describe_layout(const HeldLayout& layout, const DeviceOf& device_of, const ByteRange& range,
                             IoMode mode, uint32_t max_bytes) {
  LayoutAnswer answer{.end = range.begin};
  std::optional<Part> part;
  uint64_t bytes = kResultBytes;
  while (answer.end < range.end) {
    const HeldGrant* grant = layout.at(answer.end, mode);
    const std::optional<ByteRange> hole = mode == IoMode::kRead ? layout.hole_at(answer.end) : std::nullopt;
    if (grant == nullptr && !hole) break;
    // A hole has no handle: it goes with whatever connection is being told.
    const bool new_part = !part || part->body.segments.size() == nfs4::kSegmentsMax ||
                          (grant != nullptr && part->body.connection != grant->connection);
    bytes += kSegmentBytes + (new_part ? kLayoutBytes : 0);
    answer.out_of_bytes = bytes > max_bytes || (new_part && answer.layouts.size() + 1 >= nfs4::kSmallListMax);
    if (answer.out_of_bytes) break;
    nfs4::Segment segment;  // a hole is on no device
    if (grant != nullptr) {
      segment = segment_of(*grant, device_of(grant->logical));
    } else {
      segment.file_offset = hole->begin;
      segment.length = hole->length();
    }
    // Only the first grant may reach back before what was asked for.
    if (part && segment.file_offset != answer.end) break;
    if (new_part) {
      if (part) answer.layouts.push_back(finish(*std::move(part), mode));
      part = Part{.offset = segment.file_offset};
      part->body.connection = grant != nullptr ? grant->connection : 0;
    }
    answer.end = part->end = segment.file_offset + segment.length;
    part->body.segments.push_back(segment);
  }
  if (part) answer.layouts.push_back(finish(*std::move(part), mode));
  return answer;
}

}  // namespace pnfsrdma::mds

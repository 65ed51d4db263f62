// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/verification.h"

#include <algorithm>

#include "shared/base/crc32c.h"

namespace pnfsrdma::brick {
namespace {

// A grant that is withdrawn waits for the reading of so many bytes at most.
constexpr uint64_t kPieceBytes = 256 << 10;

}  // namespace

VerifyReply Verification::verify(const VerifyCall& call) {
  VerifyReply reply{.id = call.id, .status = flush(call), .medium = true};
  for (const PersistTarget& target : call.ranges) {
    if (reply.status != PersistStatus::kOk) break;
    const auto checksum = this->checksum(target, reply.medium);
    if (checksum) {
      reply.checksums.push_back(*checksum);
    } else {
      reply.status = PersistStatus::kUnknownGrant;
    }
  }
  if (reply.status != PersistStatus::kOk) reply.checksums.clear();
  reply.verifier = gate_.verifier();
  return reply;
}

PersistStatus Verification::flush(const VerifyCall& call) {
  ranges_.clear();
  uint64_t left = kVerifyBytesPerMessage;
  for (const PersistTarget& target : call.ranges) {
    const auto memory = exposures_.memory(target.grant);
    if (!memory) return PersistStatus::kUnknownGrant;
    if (target.offset > memory->size() || target.length > memory->size() - target.offset ||
        target.length > left)
      return PersistStatus::kBounds;
    left -= target.length;
    ranges_.push_back(memory->subspan(target.offset, target.length));
  }
  return gate_.persist(ranges_) ? PersistStatus::kOk : PersistStatus::kIo;
}

std::optional<uint32_t> Verification::checksum(const PersistTarget& target, bool& medium) {
  uint32_t sum = 0;
  for (uint64_t done = 0; done < target.length;) {
    const uint64_t length = std::min(target.length - done, kPieceBytes);
    const auto use = exposures_.use(target.grant);
    if (!use) return std::nullopt;
    const ByteSpan piece = use->memory.subspan(target.offset + done, length);
    medium = gate_.evict(piece) && medium;
    sum = crc32c(piece, sum);
    done += length;
  }
  return sum;
}

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma::rdma::iwarp {

// Why a stream ends, as a Terminate message says it: layer, error type and code (RFC 5040, 4.8; RFC 5041, 7;
// RFC 5044, 8).
struct TerminateCode {
  uint8_t layer = 0;  // 0 RDMAP, 1 DDP, 2 LLP (MPA)
  uint8_t type = 0;
  uint8_t code = 0;
  bool operator==(const TerminateCode&) const = default;
};

inline constexpr TerminateCode kLocalCatastrophic{0, 0, 0x00};
inline constexpr TerminateCode kReadInvalidStag{0, 1, 0x00};
inline constexpr TerminateCode kReadBounds{0, 1, 0x01};
inline constexpr TerminateCode kReadAccess{0, 1, 0x02};
inline constexpr TerminateCode kReadWrap{0, 1, 0x04};
inline constexpr TerminateCode kCannotInvalidate{0, 1, 0x09};
inline constexpr TerminateCode kRdmapVersionError{0, 2, 0x05};
inline constexpr TerminateCode kUnexpectedOpcode{0, 2, 0x06};
inline constexpr TerminateCode kStreamCatastrophic{0, 2, 0x07};
inline constexpr TerminateCode kRemoteOperationFailed{0, 2, 0xff};
// DDP has no code for "no such right": a write to a read-only region is told as an STag that is not good for
// it.
inline constexpr TerminateCode kTaggedInvalidStag{1, 1, 0x00};
inline constexpr TerminateCode kTaggedBounds{1, 1, 0x01};
inline constexpr TerminateCode kTaggedWrap{1, 1, 0x03};
inline constexpr TerminateCode kTaggedVersion{1, 1, 0x04};
inline constexpr TerminateCode kUntaggedQueue{1, 2, 0x01};
inline constexpr TerminateCode kUntaggedNoBuffer{1, 2, 0x02};
inline constexpr TerminateCode kUntaggedSequence{1, 2, 0x03};
inline constexpr TerminateCode kUntaggedOffset{1, 2, 0x04};
inline constexpr TerminateCode kUntaggedTooLong{1, 2, 0x05};
inline constexpr TerminateCode kUntaggedVersion{1, 2, 0x06};
inline constexpr TerminateCode kCrcError{2, 0, 0x02};
inline constexpr TerminateCode kFrameLength{2, 0, 0x03};
inline constexpr TerminateCode kInsufficientReadDepth{2, 0, 0x06};

}  // namespace pnfsrdma::rdma::iwarp

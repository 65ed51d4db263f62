// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Bounds of NFSv4 types. Those of the RFC are marked; where the RFC has none, ours are far above what is of
// use, so that "too long" is answered by the operation (NFS4ERR_NAMETOOLONG) and not by BADXDR.
namespace pnfsrdma::nfs4 {

inline constexpr uint32_t kProgram = 100003;
inline constexpr uint32_t kVersion = 4;
inline constexpr uint32_t kProcedureNull = 0;
inline constexpr uint32_t kProcedureCompound = 1;
// The callback program has no fixed number: the client names it in CREATE_SESSION. Its version is 1.
inline constexpr uint32_t kCallbackVersion = 1;
inline constexpr uint32_t kCallbackProgramDefault = 0x40000000;
inline constexpr uint16_t kPort = 2049;

inline constexpr size_t kFileHandleSize = 128;   // RFC
inline constexpr size_t kVerifierSize = 8;       // RFC
inline constexpr size_t kStateidOtherSize = 12;  // RFC
inline constexpr size_t kSessionIdSize = 16;     // RFC
inline constexpr size_t kDeviceIdSize = 16;      // RFC
inline constexpr size_t kOpaqueMax = 1024;       // RFC: owners

inline constexpr size_t kComponentMax = 4096;
inline constexpr size_t kLinkTextMax = 16384;
inline constexpr size_t kTextMax = 4096;
inline constexpr size_t kTagMax = 1024;
inline constexpr size_t kBitmapWordsMax = 16;
inline constexpr size_t kAttributeBytesMax = 65536;
inline constexpr size_t kPosixAclMax = 4096;  // entries
inline constexpr size_t kLayoutBodyMax = size_t{1} << 20;
inline constexpr size_t kXattrValueMax = 65536 + 4096;
inline constexpr size_t kDataMax = size_t{1} << 24;
inline constexpr size_t kSmallListMax = 256;
inline constexpr size_t kListMax = 65536;
// Operations of one COMPOUND that are decoded at all; a session's ca_maxoperations is lower.
inline constexpr size_t kOperationsMax = 1024;

}  // namespace pnfsrdma::nfs4

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/attributes.h"
#include "shared/nfs4/response.h"

namespace pnfsrdma::nfs4 {

// Bits of ACCESS.
inline constexpr uint32_t kAccessRead = 0x01;
inline constexpr uint32_t kAccessLookup = 0x02;
inline constexpr uint32_t kAccessModify = 0x04;
inline constexpr uint32_t kAccessExtend = 0x08;
inline constexpr uint32_t kAccessDelete = 0x10;
inline constexpr uint32_t kAccessExecute = 0x20;
// RFC 8276, 8.2
inline constexpr uint32_t kAccessXattrRead = 0x40;
inline constexpr uint32_t kAccessXattrWrite = 0x80;
inline constexpr uint32_t kAccessXattrList = 0x100;

// ACCESS (RFC 8881, 18.1)
struct AccessArguments {
  uint32_t access = 0;
};
struct AccessResult {
  uint32_t supported = 0;
  uint32_t access = 0;
};
using AccessResponse = Response<AccessResult>;

// GETATTR (18.7)
struct GetAttributesArguments {
  Bitmap requested;
};
struct GetAttributesResult {
  Attributes attributes;
};
using GetAttributesResponse = Response<GetAttributesResult>;

// SETATTR (18.30): attrsset is on the wire whatever the status.
struct SetAttributesArguments {
  Stateid stateid;
  Attributes attributes;
};
struct SetAttributesResult {
  Bitmap attributes_set;
};
using SetAttributesResponse = Response<SetAttributesResult, kEveryError, SetAttributesResult>;

// VERIFY (18.31), NVERIFY (18.15)
struct VerifyArguments {
  Attributes attributes;
};
struct VerifyResult {};
using VerifyResponse = Response<VerifyResult>;

struct NegatedVerifyArguments {
  Attributes attributes;
};
struct NegatedVerifyResult {};
using NegatedVerifyResponse = Response<NegatedVerifyResult>;

}  // namespace pnfsrdma::nfs4

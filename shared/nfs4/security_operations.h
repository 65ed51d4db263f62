// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

namespace pnfsrdma::nfs4 {

// rpc_gss_svc_t
enum class GssService : uint32_t { kNone = 1, kIntegrity = 2, kPrivacy = 3 };
constexpr bool xdr_known(GssService service) {
  return service >= GssService::kNone && service <= GssService::kPrivacy;
}

// secinfo4: an RPC authentication flavour (rpc::AuthFlavor); only RPCSEC_GSS (6) says more.
inline constexpr uint32_t kFlavorNone = 0;
inline constexpr uint32_t kFlavorSys = 1;
inline constexpr uint32_t kFlavorGss = 6;
struct GssInfo {
  SecurityObjectId object_id;
  uint32_t quality = 0;
  GssService service = GssService::kNone;
};
using SecurityFlavor = xdr::Union<uint32_t, xdr::Arm<xdr::Void, kFlavorSys>, xdr::Arm<GssInfo, kFlavorGss>,
                                  xdr::Default<xdr::Void>>;

// SECINFO (RFC 8881, 18.29). Consumes the current filehandle.
struct SecurityInfoArguments {
  Component name;
};
struct SecurityInfoResult {
  xdr::List<SecurityFlavor, kSmallListMax> flavors;
};
using SecurityInfoResponse = Response<SecurityInfoResult>;

// SECINFO_NO_NAME (18.45)
enum class SecurityInfoStyle : uint32_t { kCurrent = 0, kParent = 1 };
constexpr bool xdr_known(SecurityInfoStyle style) {
  return style <= SecurityInfoStyle::kParent;
}
struct SecurityInfoNoNameArguments {
  SecurityInfoStyle style = SecurityInfoStyle::kCurrent;
};
struct SecurityInfoNoNameResult {
  xdr::List<SecurityFlavor, kSmallListMax> flavors;
};
using SecurityInfoNoNameResponse = Response<SecurityInfoNoNameResult>;

}  // namespace pnfsrdma::nfs4

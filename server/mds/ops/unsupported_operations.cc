// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/handlers.h"

// Operations that are decoded, and answered NFS4ERR_NOTSUPP.
namespace pnfsrdma::mds {

// clang-format off
#define PNFSRDMA_UNSUPPORTED(X) \
  /* RFC 8881, 17: an NFSv4.1 server must not do these. */ \
  X(OpenConfirm) X(Renew) X(SetClientId) X(SetClientIdConfirm) X(ReleaseLockOwner) \
  /* No delegation outlives its client (CLAIM_DELEGATE_PREV). */ \
  X(DelegationPurge) \
  /* No named attributes; those of RFC 8276 are other ones. */ \
  X(OpenAttributeDirectory) \
  /* State protection is SP4_NONE only. */ \
  X(SetSsv) \
  /* Clients learn of devices from LAYOUTGET. */ \
  X(GetDeviceList) \
  /* Optional in NFSv4.2. */ \
  X(CopyNotify) X(WriteSame)
// clang-format on

#define PNFSRDMA_HANDLER(Name)                                                  \
  nfs4::Name##Response handle(CompoundContext&, const nfs4::Name##Arguments&) { \
    return nfs4::Status::kNotSupp;                                              \
  }
PNFSRDMA_UNSUPPORTED(PNFSRDMA_HANDLER)
#undef PNFSRDMA_HANDLER

nfs4::IllegalResponse handle(CompoundContext&, const nfs4::IllegalArguments&) {
  return nfs4::Status::kOpIllegal;
}

}  // namespace pnfsrdma::mds

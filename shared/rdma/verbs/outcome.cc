// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/outcome.h"

namespace pnfsrdma::rdma::verbs {

Outcome outcome_of(ibv_wc_status status, Opcode opcode) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return Outcome::kSuccess;
    case IBV_WC_WR_FLUSH_ERR:
      return Outcome::kFlushed;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return Outcome::kLocalProtection;
    case IBV_WC_LOC_QP_OP_ERR:
      // Soft-RoCE's word for a message that its receive is too short for.
      return opcode == Opcode::kReceive ? Outcome::kLengthError : Outcome::kLocalProtection;
    case IBV_WC_REM_ACCESS_ERR:
      return Outcome::kRemoteAccess;
    case IBV_WC_REM_OP_ERR:
      return Outcome::kRemoteOperation;
    case IBV_WC_LOC_LEN_ERR:
      return Outcome::kLengthError;
    case IBV_WC_REM_INV_REQ_ERR:
      // Of messages the target says so when they do not fit, of the rest when it does not like the request.
      return opcode == Opcode::kSend || opcode == Opcode::kReceive ? Outcome::kLengthError
                                                                   : Outcome::kRemoteAccess;
    default:
      // Retries exceeded, also those for a peer without receives; the device or its library broken.
      return Outcome::kConnectionLost;
  }
}

}  // namespace pnfsrdma::rdma::verbs

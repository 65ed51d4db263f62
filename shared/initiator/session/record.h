// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "shared/base/bytes.h"
#include "shared/base/result.h"
#include "shared/initiator/credential.h"
#include "shared/nfs4/compound.h"

namespace pnfsrdma::initiator {

// Builds the record of one COMPOUND call in `out` (whose capacity is used again): mark, RPC header with
// AUTH_SYS, and then what the caller adds to compound().
class CallRecord {
 public:
  CallRecord(Bytes& out, uint32_t xid, const Credential& credential, uint32_t minor_version);
  nfs4::CompoundWriter& compound() { return *compound_; }
  // Fills in the mark. The record is complete.
  void finish();

 private:
  Bytes& out_;
  std::optional<nfs4::CompoundWriter> compound_;
};

// The results inside a reply's record, a view. EPROTO if it is not a reply, the errno of
// ReplyHeader::to_error() for one that refuses.
Result<ByteSpan> results_of(ByteSpan record);

}  // namespace pnfsrdma::initiator

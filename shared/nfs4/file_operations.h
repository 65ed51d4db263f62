// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

// Data through the server. Data is a xdr::Payload: decoded it is a view into the record it came in.
namespace pnfsrdma::nfs4 {

// READ (RFC 8881, 18.22)
struct ReadArguments {
  Stateid stateid;
  uint64_t offset = 0;
  uint32_t count = 0;
};
struct ReadResult {
  bool end_of_file = false;
  Data data;
};
using ReadResponse = Response<ReadResult>;

// WRITE (18.32)
struct WriteArguments {
  Stateid stateid;
  uint64_t offset = 0;
  StableHow stable = StableHow::kUnstable;
  Data data;
};
struct WriteResult {
  uint32_t count = 0;
  StableHow committed = StableHow::kUnstable;
  Verifier verifier{};
};
using WriteResponse = Response<WriteResult>;

// COMMIT (18.3). A count of 0 means to the end of the file.
struct CommitArguments {
  uint64_t offset = 0;
  uint32_t count = 0;
};
struct CommitResult {
  Verifier verifier{};
};
using CommitResponse = Response<CommitResult>;

}  // namespace pnfsrdma::nfs4

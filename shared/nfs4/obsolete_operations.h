// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

// Operations of NFSv4.0 that NFSv4.1 keeps the numbers of and forbids (RFC 8881, 17): decoded, answered
// NFS4ERR_NOTSUPP. And OP_ILLEGAL, the answer to a number that is no operation.
namespace pnfsrdma::nfs4 {

struct OpenConfirmArguments {
  Stateid open_stateid;
  uint32_t seqid = 0;
};
struct OpenConfirmResult {
  Stateid open_stateid;
};
using OpenConfirmResponse = Response<OpenConfirmResult>;

struct RenewArguments {
  uint64_t client_id = 0;
};
struct RenewResult {};
using RenewResponse = Response<RenewResult>;

struct SetClientIdArguments {
  ClientOwner client;
  uint32_t callback_program = 0;
  NetworkAddress callback_location;
  uint32_t callback_identifier = 0;
};
struct SetClientIdResult {
  uint64_t client_id = 0;
  Verifier confirm{};
};
using SetClientIdResponse = Response<SetClientIdResult, Status::kClidInuse, NetworkAddress>;

struct SetClientIdConfirmArguments {
  uint64_t client_id = 0;
  Verifier confirm{};
};
struct SetClientIdConfirmResult {};
using SetClientIdConfirmResponse = Response<SetClientIdConfirmResult>;

struct ReleaseLockOwnerArguments {
  StateOwner lock_owner;
};
struct ReleaseLockOwnerResult {};
using ReleaseLockOwnerResponse = Response<ReleaseLockOwnerResult>;

struct IllegalArguments {};
struct IllegalResult {};
using IllegalResponse = Response<IllegalResult>;

}  // namespace pnfsrdma::nfs4

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

// Operations on the current and the saved filehandle. Empty structs are operations without arguments or
// results: each has its own type.
namespace pnfsrdma::nfs4 {

// GETFH (RFC 8881, 18.8)
struct GetFileHandleArguments {};
struct GetFileHandleResult {
  FileHandle object;
};
using GetFileHandleResponse = Response<GetFileHandleResult>;

// PUTFH (18.19), PUTPUBFH (18.20), PUTROOTFH (18.21)
struct PutFileHandleArguments {
  FileHandle object;
};
struct PutFileHandleResult {};
using PutFileHandleResponse = Response<PutFileHandleResult>;

struct PutPublicFileHandleArguments {};
struct PutPublicFileHandleResult {};
using PutPublicFileHandleResponse = Response<PutPublicFileHandleResult>;

struct PutRootFileHandleArguments {};
struct PutRootFileHandleResult {};
using PutRootFileHandleResponse = Response<PutRootFileHandleResult>;

// RESTOREFH (18.27), SAVEFH (18.28)
struct RestoreFileHandleArguments {};
struct RestoreFileHandleResult {};
using RestoreFileHandleResponse = Response<RestoreFileHandleResult>;

struct SaveFileHandleArguments {};
struct SaveFileHandleResult {};
using SaveFileHandleResponse = Response<SaveFileHandleResult>;

}  // namespace pnfsrdma::nfs4

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/attributes.h"
#include "shared/nfs4/response.h"

namespace pnfsrdma::nfs4 {

// createtype4: link text for a symbolic link, numbers for a device. Types that CREATE can't make are decoded,
// so that the server can answer NFS4ERR_BADTYPE.
using CreateType =
    xdr::Union<FileType, xdr::Arm<xdr::Void, FileType::kDirectory>, xdr::Arm<LinkText, FileType::kLink>,
               xdr::Arm<SpecialData, FileType::kBlock, FileType::kCharacter>, xdr::Default<xdr::Void>>;

// CREATE (RFC 8881, 18.4): everything but regular files.
struct CreateArguments {
  CreateType type;
  Component name;
  Attributes attributes;
};
struct CreateResult {
  ChangeInfo change;
  Bitmap attributes_set;
};
using CreateResponse = Response<CreateResult>;

// LINK (18.9): the saved filehandle gets a name in the current directory.
struct LinkArguments {
  Component new_name;
};
struct LinkResult {
  ChangeInfo change;
};
using LinkResponse = Response<LinkResult>;

// LOOKUP (18.13), LOOKUPP (18.14)
struct LookupArguments {
  Component name;
};
struct LookupResult {};
using LookupResponse = Response<LookupResult>;

struct LookupParentArguments {};
struct LookupParentResult {};
using LookupParentResponse = Response<LookupParentResult>;

// OPENATTR (18.17)
struct OpenAttributeDirectoryArguments {
  bool create = false;
};
struct OpenAttributeDirectoryResult {};
using OpenAttributeDirectoryResponse = Response<OpenAttributeDirectoryResult>;

// READDIR (18.23). Cookies 0, 1 and 2 are not given to entries; bounds are in bytes.
struct ReadDirectoryArguments {
  uint64_t cookie = 0;
  Verifier cookie_verifier{};
  uint32_t directory_count = 0;  // of names and cookies, a hint
  uint32_t max_count = 0;        // of the whole ReadDirectoryResult
  Bitmap requested;
};
struct DirectoryEntry {
  uint64_t cookie = 0;
  Component name;
  Attributes attributes;
};
struct ReadDirectoryResult {
  Verifier cookie_verifier{};
  xdr::Chain<DirectoryEntry> entries;
  bool end = false;
};
using ReadDirectoryResponse = Response<ReadDirectoryResult>;

// READLINK (18.24)
struct ReadLinkArguments {};
struct ReadLinkResult {
  LinkText link;
};
using ReadLinkResponse = Response<ReadLinkResult>;

// REMOVE (18.25)
struct RemoveArguments {
  Component target;
};
struct RemoveResult {
  ChangeInfo change;
};
using RemoveResponse = Response<RemoveResult>;

// RENAME (18.26): from the saved to the current directory.
struct RenameArguments {
  Component old_name;
  Component new_name;
};
struct RenameResult {
  ChangeInfo source;
  ChangeInfo target;
};
using RenameResponse = Response<RenameResult>;

}  // namespace pnfsrdma::nfs4

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/nfs4/basic_types.h"
#include "shared/nfs4/response.h"

// Extended attributes (RFC 8276, 8.4). Keys are without the "user." of Linux.
namespace pnfsrdma::nfs4 {

using XattrValue = xdr::Opaque<kXattrValueMax>;

struct GetXattrArguments {
  Component name;
};
struct GetXattrResult {
  XattrValue value;
};
using GetXattrResponse = Response<GetXattrResult>;

enum class SetXattrOption : uint32_t { kEither = 0, kCreate = 1, kReplace = 2 };
constexpr bool xdr_known(SetXattrOption option) {
  return option <= SetXattrOption::kReplace;
}
struct SetXattrArguments {
  SetXattrOption option = SetXattrOption::kEither;
  Component key;
  XattrValue value;
};
struct SetXattrResult {
  ChangeInfo change;
};
using SetXattrResponse = Response<SetXattrResult>;

struct ListXattrsArguments {
  uint64_t cookie = 0;
  uint32_t max_count = 0;  // bytes of the ListXattrsResult
};
struct ListXattrsResult {
  uint64_t cookie = 0;
  xdr::List<Component, kListMax> names;
  bool end = false;
};
using ListXattrsResponse = Response<ListXattrsResult>;

struct RemoveXattrArguments {
  Component name;
};
struct RemoveXattrResult {
  ChangeInfo change;
};
using RemoveXattrResponse = Response<RemoveXattrResult>;

}  // namespace pnfsrdma::nfs4

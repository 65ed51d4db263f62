// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/xdr/data_item.h"

namespace pnfsrdma::rpc_rdma {

// The upper-layer binding (RFC 8166, 6): what of a program's arguments and results may travel by direct data
// placement. Arguments and results are what stands behind the RPC header. Functions that are null find
// nothing.
struct UpperLayer {
  // Data items of arguments, in order. What cannot be decoded has none.
  std::vector<xdr::DataItem> (*argument_items)(ByteSpan arguments) = nullptr;
  // The same of results.
  std::vector<xdr::DataItem> (*result_items)(ByteSpan results) = nullptr;
  // The results that `arguments` can have (RFC 8166, 3.5.3). Null: not known.
  xdr::StreamBound (*result_bound)(ByteSpan arguments) = nullptr;
  // Where data items stand in whole results of which only `reduced` is at hand: without the items whose
  // lengths, in order, are in `lengths` (0: none was taken out). Nothing if that does not fit.
  std::optional<std::vector<xdr::DataItem>> (*restored_items)(ByteSpan reduced,
                                                              std::span<const uint32_t> lengths) = nullptr;
};

}  // namespace pnfsrdma::rpc_rdma

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/xdr/data_item.h"

// NFSv4's upper-layer binding to RPC-over-RDMA (RFC 8267, 4): the data of WRITE in COMPOUND's arguments, that
// of READ and the text of READLINK in its results may be placed directly. Callbacks have nothing of that
// kind.
namespace pnfsrdma::nfs4 {

// Of COMPOUND4args; up to the first operation that cannot be decoded.
std::vector<xdr::DataItem> argument_data_items(ByteSpan arguments);

// Of COMPOUND4res. A READ or READLINK that succeeded has one, of length 0 too.
std::vector<xdr::DataItem> result_data_items(ByteSpan results);

// How long the results of COMPOUND4args can be: data items from READ's count and the longest link text; the
// rest is not known (SIZE_MAX) if an operation's results are not bounded by its arguments.
xdr::StreamBound result_bound(ByteSpan arguments);

// Where in COMPOUND4res the data items stand that are missing in `reduced`: the n-th READ or READLINK lacks
// `lengths[n]` bytes and their padding, 0 none. Nothing if the lengths in the results are others.
std::optional<std::vector<xdr::DataItem>> restored_data_items(ByteSpan reduced,
                                                              std::span<const uint32_t> lengths);

}  // namespace pnfsrdma::nfs4

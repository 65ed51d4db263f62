// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pnfsrdma::xdr {

// Where in an XDR stream the bytes of an opaque stand that may travel apart from the rest (RFC 8166, 3.4:
// direct data placement). Its length word stays in the stream, its padding goes with it. A value.
struct DataItem {
  size_t position = 0;  // of the first byte; a multiple of four
  uint32_t length = 0;  // without padding

  bool operator==(const DataItem&) const = default;
};

// How large a stream still to come can be, so that there is memory for it. A value.
struct StreamBound {
  size_t stream_bytes = 0;           // without the data items; SIZE_MAX: not known
  std::vector<uint32_t> data_bytes;  // the longest data items, in the order in which they come

  bool operator==(const StreamBound&) const = default;
};

}  // namespace pnfsrdma::xdr

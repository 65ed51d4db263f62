// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/initiator/metadata_channel.h"

namespace pnfsrdma::initiator {

// The layouts of an answer with their bodies decoded. A body that is malformed or of another type grants
// nothing: its layout is left out (the stateid counts all the same).
LayoutGranted decode_layouts(const nfs4::LayoutGetResult& result);

}  // namespace pnfsrdma::initiator

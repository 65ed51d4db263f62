// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/unstable_memory.h"

namespace pnfsrdma::initiator {

UnstableBytes::~UnstableBytes() {
  memory_.used_ -= UnstableMemory::cost(bytes_);
}

UnstableCopy UnstableMemory::copy(ByteSpan bytes) {
  if (used_.fetch_add(cost(bytes)) + cost(bytes) > limit_) {
    used_ -= cost(bytes);
    return nullptr;
  }
  return std::make_shared<const UnstableBytes>(*this, bytes);
}

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "library/session/session_memory.h"

#include <sys/mman.h>

#include "library/program_memory.h"

namespace pnfsrdma::library::session {

Result<std::unique_ptr<SessionMemory>> SessionMemory::make(initiator::DataPath& data_path,
                                                           MutableByteSpan memory, Kind kind) {
  std::unique_ptr<SessionMemory> made(new SessionMemory(memory, kind));
  TRY(keep_from_children(memory));
  TRY_ASSIGN(made->buffer_, data_path.adopt_buffer(memory));
  return made;
}

SessionMemory::~SessionMemory() {
  buffer_.reset();
  if (kind_ == Kind::kMappedHere) {
    (void)::munmap(memory_.data(), memory_.size());
  } else {
    leave_to_children(memory_);
  }
}

}  // namespace pnfsrdma::library::session

// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/session/repetition.h"

namespace pnfsrdma::initiator {
namespace {

using nfs4::Operation;

enum class Effect {
  kLeads,    // sets the current or saved filehandle, or guards what follows: again
  kDone,     // its result is there: not again
  kCreated,  // sets a filehandle by changing something: neither again nor without
};

Effect effect_of(Operation operation) {
  switch (operation) {
    case Operation::kPutFileHandle:
    case Operation::kPutRootFileHandle:
    case Operation::kPutPublicFileHandle:
    case Operation::kLookup:
    case Operation::kLookupParent:
    case Operation::kSaveFileHandle:
    case Operation::kRestoreFileHandle:
    case Operation::kVerify:
    case Operation::kNegatedVerify:
      return Effect::kLeads;
    case Operation::kOpen:
    case Operation::kCreate:
    case Operation::kOpenAttributeDirectory:
      return Effect::kCreated;
    default:
      return Effect::kDone;
  }
}

}  // namespace

std::optional<std::vector<size_t>> operations_to_repeat(
    const std::vector<nfs4::ArgumentOperation>& operations, size_t failed) {
  std::vector<size_t> indices;
  for (size_t index = 0; index < operations.size(); ++index) {
    if (index < failed) {
      const Effect effect = effect_of(nfs4::operation_of(operations[index]));
      if (effect == Effect::kCreated) return std::nullopt;
      if (effect == Effect::kDone) continue;
    }
    indices.push_back(index);
  }
  return indices;
}

bool asks_for_repetition(nfs4::Status status) {
  return status == nfs4::Status::kDelay || status == nfs4::Status::kGrace;
}

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/ended_handles.h"

namespace pnfsrdma::mds {

using Verdict = Delegations::Verdict;

void recall_under_ended_handles(Delegations& delegations, const HandleKeys& handles) {
  delegations.recall_by_handle([&handles](const nfs4::FileHandle& handle) {
    const auto decoded = handles.look_at(handle);
    if (!decoded) return Verdict::kGone;
    return decoded->superseded ? Verdict::kRecalled : Verdict::kStays;
  });
}

void recall_of_export(Delegations& delegations, const HandleKeys& handles, uint16_t export_id) {
  delegations.recall_by_handle([&handles, export_id](const nfs4::FileHandle& handle) {
    const auto decoded = handles.look_at(handle);
    const bool is_meant = decoded && decoded->handle.export_id == export_id;
    return is_meant ? Verdict::kRecalled : Verdict::kStays;
  });
}

}  // namespace pnfsrdma::mds

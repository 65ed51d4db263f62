// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/cluster/host_steps.h"
#include "cli/cluster/invitation.h"
#include "cli/cluster/member_settings.h"
#include "cli/output/failure.h"

// Certificates for the control of bricks, on the hosts that have them.
namespace pnfsrdma::cli {

// Makes this host, which is no member, one whose bricks only the cluster's members control: it knows nothing of the
// cluster but whose certificates are let in. With another token it gets another certificate for the same key.
Outcome<> become_brick_host(HostSteps& steps, const MemberPaths& paths, const InvitationToken& token,
                            const std::string& name, const std::string& address);

// What an administrator of a member with a metadata server may want. Not done by itself: bricks that have no
// certificate yet would be out of reach.
Outcome<> tell_of_brick_control(HostSteps& steps, const MemberPaths& paths);

}  // namespace pnfsrdma::cli

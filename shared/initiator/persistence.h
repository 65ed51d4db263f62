// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pnfsrdma::initiator {

// What a call does when the server does not answer: nfs(5), hard | soft | softerr.
enum class Persistence { kHard, kSoft, kSoftError };

}  // namespace pnfsrdma::initiator

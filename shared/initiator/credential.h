// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace pnfsrdma::initiator {

// RFC 5531, appendix A: AUTH_SYS carries at most this many supplementary groups.
inline constexpr size_t kCredentialGroupsMax = 16;

// In whose name a COMPOUND runs: the AUTH_SYS body without host name and stamp. A value.
struct Credential {
  uint32_t user = 0;
  uint32_t group = 0;
  std::vector<uint32_t> groups;  // more than kCredentialGroupsMax are cut off on the wire
  bool operator==(const Credential&) const = default;
};

}  // namespace pnfsrdma::initiator

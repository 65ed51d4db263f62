// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "shared/initiator/file/file_state.h"

namespace pnfsrdma::initiator {

// The connection has no answer, or its hello is not true any more: writes must not be noted under it.
bool outdated(const Connection& connection, const std::optional<brick::PersistReply>& reply);

// Whether a brick still has what it took: it has, as long as its verifier is that of the writes (DESIGN.md
// section 5). It flushes nothing. Waits for bricks. Thread-safe; without a state of its own.
class VerifierCheck {
 public:
  explicit VerifierCheck(FileState& file) : file_(file) {}

  // DirtyList::verify(); what is void is written again by the next commit.
  void verify(const Flush& flush, const Device* device, const std::optional<xdr::FixedOpaque<8>>& now);
  // Behind the flush: each brick that took some of it, and has not `answered` in it, is asked. Error: one
  // could not be asked, nothing is known.
  Result<> ask_the_others(const Flush& flush, std::span<const Device* const> answered);

 private:
  // One round trip. Only an answer counts: a connection that nobody uses looks alive long after its brick is
  // gone, and what its hello said is old. None: the MDS knows no such brick any more, or has given up waiting
  // for it. Error: kBrickSilent, or nobody wants to know any more.
  Result<std::optional<BrickVerifier>> ask_verifier(Device& device);

  FileState& file_;
};

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "shared/initiator/file/committer.h"
#include "shared/initiator/file/through_mds.h"
#include "shared/initiator/file/verifier_check.h"

namespace pnfsrdma::initiator {

// Flushes what bricks took by RDMA, all of them at once: native FLUSH, commit message or LAYOUTCOMMIT, as
// each connection has it; through the MDS where no layout can be used. It answers 0 only when each brick has
// said its verifier behind that. One flush of a file at a time: its caller (Flusher) sees to it. Waits for
// bricks and the MDS.
class BrickFlusher {
 public:
  BrickFlusher(FileState& file, VerifierCheck& verifiers, Committer& committer, ThroughMds& through_mds)
      : file_(file), verifiers_(verifiers), committer_(committer), through_mds_(through_mds) {}

  // Flush::by_rdma. `through_gate`: as of Flusher::flush().
  Result<> flush(const Flush& flush, bool through_gate);

 private:
  struct Target;
  struct Job;
  using Jobs = std::map<Device*, Job, std::less<>>;

  Result<> flush_devices(Jobs& jobs, const Flush& flush);
  // Error: what the LAYOUTCOMMIT that flushes there has failed with.
  Result<> prepare(Job& job, const Flush& flush);
  static void add_target(Job& job, Target target);
  Result<> flush_by_layout_commit(Job& job);
  // True: something was posted.
  bool start(Job& job, SteadyTime deadline);
  static Result<> finish_native(Job& job);
  Result<> finish_message(Job& job, const Flush& flush);

  FileState& file_;
  VerifierCheck& verifiers_;
  Committer& committer_;
  ThroughMds& through_mds_;
};

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shared/base/sync.h"
#include "shared/initiator/file/background.h"
#include "shared/initiator/file/restorer.h"

namespace pnfsrdma::initiator {

// LAYOUTCOMMIT of one file, one at a time: tells the MDS the sizes and times that it does not know, from
// FileState::dirty. Growth whose layout was lost is restored first. It never flushes, so that a flush may
// call it, and never waits for a brick but inside of Restorer. No mutex is held across a call. Thread-safe.
class Committer {
 public:
  Committer(FileState& file, Restorer& restorer, Background& background)
      : file_(file), restorer_(restorer), background_(background) {}

  // Tells the MDS everything it does not know; waits. `persist`: what the MDS has the brick flush first;
  // ESTALE: there is no layout to commit it under, or growth is being rewritten.
  Result<> commit_now(std::vector<nfs4::PersistRange> persist = {});
  Result<> commit_as_mounted() {
    return file_.patience.as_mounted([this] { return commit_now(); });
  }
  // As commit_now(), of a layout that is about to be returned: restores nothing, and waits for nobody who does. What is
  // void then, or becomes it, is written again soon.
  Result<> commit_for_return();
  // Sends the mtime and does not wait; deferred when one is under way or was just sent.
  void commit_beside();
  // Sends all and does not wait; nothing when one is under way.
  void start_commit();
  // What was grown and not committed has to be written again: by whoever comes next, or soon.
  void void_growth();

 private:
  Result<> restore();
  void set_restoring(bool restoring);
  void restore_soon();
  Result<> commit_claimed(const std::vector<nfs4::PersistRange>& persist);
  Result<> commit_once(const std::vector<nfs4::PersistRange>& persist);
  // The commit is claimed; its end is in the answer.
  void send_commit();
  // None: there is no layout to commit it under.
  std::optional<nfs4::LayoutCommitArguments> commit_arguments(const Commit& commit,
                                                              const std::vector<nfs4::PersistRange>& persist);
  // `holdings`: LayoutCache::holdings() when it was sent.
  Result<> commit_outcome(const Commit& commit, const MetadataResult<nfs4::LayoutCommitResult>& answer,
                          uint64_t holdings);
  // One LAYOUTCOMMIT of a file at a time. Errors: aborted, or nobody waits any more; ESTALE: a restoration has it, and
  // whoever asks can do without.
  enum class Beside { kNothing, kRestoration };
  Result<> claim_commit(Beside beside = Beside::kNothing);
  void end_commit();

  FileState& file_;
  Restorer& restorer_;
  Background& background_;

  Mutex mutex_;
  Condition done_;
  // Guarded by mutex_.
  bool committing_ = false;
  bool restoring_ = false;  // by whoever has claimed the commit
  bool deferred_ = false;
  SteadyTime last_{};
};

}  // namespace pnfsrdma::initiator

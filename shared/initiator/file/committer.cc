// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/committer.h"

#include <algorithm>
#include <utility>

namespace pnfsrdma::initiator {

namespace {

// The answer to an operation on a layout that is not there any more.
bool is_layout_gone(nfs4::Status status) {
  return is_lost_state(status) || status == nfs4::Status::kBadLayout || status == nfs4::Status::kBadIoMode;
}

MetadataError layout_gone() {
  return {nfs4::Status::kBadLayout, 0};
}

}  // namespace

Result<> Committer::claim_commit(Beside beside) {
  std::unique_lock lock(mutex_);
  while (committing_) {
    if (restoring_ && beside == Beside::kRestoration) return fail(ESTALE, "growth is being rewritten");
    TRY(file_.patience.still_wanted("LAYOUTCOMMIT"));
    done_.wait_for(lock, std::chrono::seconds(1));
  }
  committing_ = true;
  last_ = file_.fabric.now();
  return {};
}

void Committer::end_commit() {
  std::lock_guard lock(mutex_);
  committing_ = false;
  done_.notify_all();
}

std::optional<nfs4::LayoutCommitArguments> Committer::commit_arguments(
    const Commit& commit, const std::vector<nfs4::PersistRange>& persist) {
  const auto stateid = file_.cache.stateid();
  if (!stateid) return std::nullopt;
  // The growth was written under layouts that are lost: the server has zeroed it. Committed under a new one
  // it would be a file with zeros in it.
  if (commit.size && file_.dirty.growth_void(file_.cache.incarnation())) return std::nullopt;
  nfs4::LayoutCommitArguments arguments{.offset = commit.first,
                                        .length = commit.last - commit.first,
                                        .stateid = *stateid,
                                        .time_modify = nfs4::Time::from(commit.modified),
                                        .update = {.layout_type = nfs4::kLayoutTypePmem}};
  if (commit.size) {
    // The last byte has to lie in the range (RFC 8881, 18.42.3).
    arguments.last_write_offset = *commit.size - 1;
    arguments.length = std::max(arguments.length, *commit.size - arguments.offset);
  }
  nfs4::LayoutUpdate update;
  update.persist.assign(persist.begin(), persist.end());
  // More than the update holds: the whole range then, which is never less.
  if (persist.size() > nfs4::kPersistRangesMax) update.persist = {{arguments.offset, arguments.length}};
  arguments.update.body = xdr::encode_to_bytes(update);
  return arguments;
}

Result<> Committer::commit_now(std::vector<nfs4::PersistRange> persist) {
  if (!file_.dirty.anything_uncommitted() && persist.empty()) return {};
  TRY(claim_commit(persist.empty() ? Beside::kNothing : Beside::kRestoration));
  Result<> outcome = commit_claimed(persist);
  end_commit();
  return outcome;
}

// A restoration writes through the MDS, whose WRITE may wait for the very layout that is to go back: nobody who
// gives it back waits for one, or begins one.
Result<> Committer::commit_for_return() {
  if (!file_.dirty.anything_uncommitted()) return {};
  if (const Result<> claimed = claim_commit(Beside::kRestoration); !claimed) {
    if (claimed.error().number() != ESTALE) return claimed;
    // All growth is on its way through the MDS; if it does not arrive it is written again.
    file_.dirty.void_growth();
    return {};
  }
  Result<> outcome;
  if (file_.growth_void()) {
    file_.dirty.void_growth();
  } else {
    outcome = commit_once({});
  }
  end_commit();
  if (file_.growth_void()) restore_soon();
  return outcome;
}

Result<> Committer::restore() {
  set_restoring(true);
  const Result<> outcome = restorer_.restore_growth();
  set_restoring(false);
  return outcome;
}

void Committer::set_restoring(bool restoring) {
  std::lock_guard lock(mutex_);
  restoring_ = restoring;
  done_.notify_all();
}

void Committer::restore_soon() {
  background_.post([this, alive = file_.shared_from_this()] { (void)commit_now(); });
}

Result<> Committer::commit_claimed(const std::vector<nfs4::PersistRange>& persist) {
  for (int turn = 0; turn < kRestorationsMax; ++turn) {
    // Not inside a flush: it is under way for exactly what is there now.
    if (persist.empty() && file_.dirty.growth_void(file_.cache.incarnation())) TRY(restore());
    TRY(commit_once(persist));
    if (!persist.empty() || !file_.dirty.growth_void(file_.cache.incarnation())) return {};
  }
  return fail(EIO, "layouts are lost repeatedly");
}

Result<> Committer::commit_once(const std::vector<nfs4::PersistRange>& persist) {
  auto commit = file_.dirty.begin_commit(file_.cache.incarnation());
  if (!commit && persist.empty()) return {};
  // Only a flush: nothing new to tell.
  const bool only_persist = !commit;
  if (only_persist) {
    commit = Commit{.first = persist.front().offset};
    for (const nfs4::PersistRange& range : persist) {
      commit->first = std::min(commit->first, range.offset);
      commit->last = std::max(commit->last, range.offset + range.length);
    }
  }
  MetadataResult<nfs4::LayoutCommitResult> answer = std::unexpected(layout_gone());
  const uint64_t holdings = file_.cache.holdings();
  for (int tries = 0; tries < kStateidTries; ++tries) {
    auto arguments = commit_arguments(*commit, persist);
    if (!arguments) break;
    if (only_persist) arguments->time_modify.reset();
    file_.fabric.statistics.layoutcommits.add();
    answer = file_.mds.layout_commit(file_.reference(true), *arguments);
    if (answer || answer.error().status != nfs4::Status::kOldStateid) break;
  }
  Result<> outcome;
  if (!persist.empty() && !answer) {
    const int number = is_layout_gone(answer.error().status) ? ESTALE : EIO;
    outcome = fail(number, "LAYOUTCOMMIT with ranges to flush");
  }
  if (!only_persist) {
    const Result<> committed = commit_outcome(*commit, answer, holdings);
    if (outcome) outcome = committed;
  }
  return outcome;
}

Result<> Committer::commit_outcome(const Commit& commit,
                                   const MetadataResult<nfs4::LayoutCommitResult>& answer,
                                   uint64_t holdings) {
  if (answer) {
    // Not only what this commit told: if that of before could not be learnt, all behind it would be growth.
    file_.cache.learn_size(std::max(commit.size.value_or(0), answer->new_size.value_or(0)), holdings);
    file_.forget_copies(file_.dirty.committed(commit, answer->new_size));
    return {};
  }
  if (!is_layout_gone(answer.error().status)) {
    file_.dirty.not_committed(commit);
    return fail(answer.error().to_errno(), "LAYOUTCOMMIT");
  }
  file_.dirty.commit_void(commit);
  return {};
}

void Committer::commit_beside() {
  {
    std::lock_guard lock(mutex_);
    if (deferred_) return;
    const auto since = file_.fabric.now() - last_;
    if (committing_ || since < file_.fabric.options.commit_distance) {
      deferred_ = true;
      const auto rest = std::chrono::ceil<Milliseconds>(file_.fabric.options.commit_distance - since);
      background_.after(std::max(rest, Milliseconds(1)), [this, alive = file_.shared_from_this()] {
        {
          std::lock_guard inner(mutex_);
          deferred_ = false;
        }
        commit_beside();
      });
      return;
    }
    committing_ = true;
    last_ = file_.fabric.now();
  }
  send_commit();
}

void Committer::start_commit() {
  {
    std::lock_guard lock(mutex_);
    if (committing_) return;
    committing_ = true;
    last_ = file_.fabric.now();
  }
  send_commit();
}

void Committer::send_commit() {
  const auto commit = file_.dirty.begin_commit(file_.cache.incarnation());
  if (!commit) return end_commit();
  const auto arguments = commit_arguments(*commit, {});
  if (!arguments) {
    (void)commit_outcome(*commit, std::unexpected(layout_gone()), 0);
    end_commit();
    // Whoever comes next restores it; nobody may come for long.
    if (commit->size) restore_soon();
    return;
  }
  file_.fabric.statistics.layoutcommits_beside.add();
  file_.mds.start_layout_commit(file_.reference(true), *arguments,
                                [this, alive = file_.shared_from_this(), commit = *commit,
                                 holdings = file_.cache.holdings()](const auto& answer) {
                                  const bool outdated =
                                      !answer && answer.error().status == nfs4::Status::kOldStateid;
                                  // Not lost: it is told again by the next fsync, by close, or now.
                                  if (outdated) {
                                    file_.dirty.not_committed(commit);
                                  } else {
                                    (void)commit_outcome(commit, answer, holdings);
                                  }
                                  end_commit();
                                  if (outdated) commit_beside();
                                  if (!outdated && file_.growth_void()) {
                                    background_.post([this, alive] { (void)commit_now(); });
                                  }
                                });
}

void Committer::void_growth() {
  if (!file_.dirty.grew()) return;
  // Not beside a commit that would tell its size; a restoration tells none.
  const Result<> claimed = claim_commit(Beside::kRestoration);
  if (!claimed && claimed.error().number() != ESTALE) return;
  file_.dirty.void_growth();
  if (claimed) end_commit();
  restore_soon();
}

}  // namespace pnfsrdma::initiator

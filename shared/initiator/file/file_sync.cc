// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/file_sync.h"

#include "shared/base/log.h"

// Durability (DESIGN.md section 5). fdatasync of an overwrite waits for one network round trip: the native
// FLUSHes, or the commit message, or the LAYOUTCOMMIT. fsync has its mtime travel beside that. Only a new
// size costs a second wait, behind the flush (RFC 8881, 12.5.4).
namespace pnfsrdma::initiator {

Result<> FileSync::sync(bool data_only, ErrorCursor& cursor) {
  (data_only ? file_.fabric.statistics.fdatasyncs : file_.fabric.statistics.fsyncs).add();
  Result<> outcome;
  for (int turn = 0; turn < kRestorationsMax; ++turn) {
    // What was lost with its layouts is written again before the flush.
    if (file_.growth_void()) outcome = committer_.commit_as_mounted();
    if (!outcome) break;
    const uint64_t restorations = file_.dirty.restorations();
    if (!file_.dirty.grew() && !data_only && file_.dirty.anything_uncommitted()) committer_.commit_beside();
    outcome = file_.patience.as_mounted([&] { return flusher_.flush(false); });
    if (outcome && file_.dirty.grew()) outcome = committer_.commit_as_mounted();
    if (outcome) outcome = through_mds_.check_server();
    // Lost and written again at the commit: that is not flushed yet.
    if (!outcome || file_.dirty.restorations() == restorations)
      return report_once(cursor, std::move(outcome));
  }
  if (outcome) outcome = fail(EIO, "layouts are lost repeatedly");
  return report_once(cursor, std::move(outcome));
}

Result<> FileSync::report_once(ErrorCursor& cursor, Result<> outcome) {
  // Whoever asked is gone, and the descriptor may be another process's too: that one has heard nothing.
  if (!outcome && outcome.error().number() == EINTR) return outcome;
  const uint64_t losses = file_.dirty.losses();
  const bool news = cursor.take(losses);
  if (news) file_.dirty.heard(losses);
  return report(news, std::move(outcome));
}

Result<> FileSync::report(bool lost, Result<> outcome) {
  if (outcome && lost) outcome = fail(EIO, "writes were lost: the brick restarted before they were flushed");
  if (!outcome && outcome.error().number() != EINTR) {
    log_warning("initiator", "sync-failed size={} error=\"{}\"", file_.dirty.size(),
                outcome.error().to_string());
  }
  return outcome;
}

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/call_journal.h"

namespace pnfsrdma::brick {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kStaleEpoch:
      return "stale-epoch";
    case Status::kExists:
      return "exists";
    case Status::kNotFound:
      return "not-found";
    case Status::kNoSpace:
      return "no-space";
    case Status::kBusy:
      return "busy";
    case Status::kInvalid:
      return "invalid";
    case Status::kLimit:
      return "limit";
    case Status::kIo:
      return "io";
    case Status::kTryLater:
      return "try-later";
    case Status::kLapsed:
      return "lapsed";
  }
  return "unknown-status";
}

std::string_view name_of(Procedure procedure) {
  switch (procedure) {
    case Procedure::kNull:
      return "null";
    case Procedure::kClaim:
      return "claim";
    case Procedure::kAlloc:
      return "alloc";
    case Procedure::kFree:
      return "free";
    case Procedure::kMap:
      return "map";
    case Procedure::kUnmap:
      return "unmap";
    case Procedure::kList:
      return "list";
    case Procedure::kOpenSession:
      return "open-session";
    case Procedure::kCloseSession:
      return "close-session";
    case Procedure::kListSessions:
      return "list-sessions";
    case Procedure::kExpose:
      return "expose";
    case Procedure::kWithdraw:
      return "withdraw";
    case Procedure::kListGrants:
    case Procedure::kListAllGrants:
      return "list-grants";
    case Procedure::kPersist:
      return "persist";
    case Procedure::kZero:
      return "zero";
    case Procedure::kCopy:
      return "copy";
    case Procedure::kStatistics:
      return "statistics";
    case Procedure::kIdentify:
      return "identify";
    case Procedure::kSurvey:
      return "survey";
    case Procedure::kErase:
      return "erase";
    case Procedure::kLoopTurns:
      return "loop-turns";
    case Procedure::kSessionTraffic:
      return "session-traffic";
  }
  return "unknown-procedure";
}

void write_journal(const JournalEntry& entry, std::string_view status) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(steady_now() - entry.came);
  log_debug("brick", "call peer={} procedure={} epoch={} status={} microseconds={}", entry.peer,
            name_of(entry.procedure), entry.epoch, status, took.count());
}

}  // namespace pnfsrdma::brick

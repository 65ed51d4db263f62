// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "shared/base/result.h"
#include "shared/brick/protocol.h"

namespace pnfsrdma::brick {

// The calls of the brick's control protocol (protocol.h), asynchronous. Two implementations: BrickClient
// speaks it to a daemon, and the brick's own ControlService answers it in-process (simulator, tests). One
// control loop's thread only.
//
// `done` is called exactly once, from the control loop, never from inside the call. An Error means that the
// call's outcome is unknown (ENOTCONN: never sent; ECONNRESET, ETIMEDOUT: may have been done); what the brick
// refused is a Status in the result. A lost call is the caller's to repeat: claim, free, withdraw, persist,
// zero and copy may be repeated as they are, alloc and map answer kExists when the first one did it.
class Control {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Control() = default;

  virtual void identify(Done<IdentifyResult> done) = 0;
  virtual void claim(const ClaimArguments& arguments, Done<ClaimResult> done) = 0;

  virtual void alloc(const AllocArguments& arguments, Done<RunsResult> done) = 0;
  virtual void free(const BlocksArguments& arguments, Done<StatusResult> done) = 0;
  virtual void map(const MapArguments& arguments, Done<StatusResult> done) = 0;
  virtual void unmap(const BlocksArguments& arguments, Done<StatusResult> done) = 0;
  virtual void list(const ListArguments& arguments, Done<ListResult> done) = 0;

  virtual void survey(const SurveyArguments& arguments, Done<SurveyResult> done) = 0;
  virtual void erase(const EraseArguments& arguments, Done<StatusResult> done) = 0;

  virtual void open_session(const OpenSessionArguments& arguments, Done<StatusResult> done) = 0;
  virtual void close_session(const CloseSessionArguments& arguments, Done<StatusResult> done) = 0;
  virtual void list_sessions(Done<SessionsResult> done) = 0;
  virtual void expose(const ExposeArguments& arguments, Done<ExposeResult> done) = 0;
  virtual void withdraw(const WithdrawArguments& arguments, Done<StatusResult> done) = 0;
  virtual void list_grants(const ListGrantsArguments& arguments, Done<GrantsResult> done) = 0;

  virtual void persist(const RangesArguments& arguments, Done<PersistResult> done) = 0;
  virtual void zero(const RangesArguments& arguments, Done<StatusResult> done) = 0;
  virtual void copy(const CopyArguments& arguments, Done<StatusResult> done) = 0;

  virtual void statistics(Done<StatisticsResult> done) = 0;
  virtual void loop_turns(Done<LoopTurnsResult> done) = 0;
  virtual void session_traffic(Done<SessionTrafficResult> done) = 0;
};

}  // namespace pnfsrdma::brick

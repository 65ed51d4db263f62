// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/brickd/committer.h"
#include "server/brickd/data_operations.h"
#include "server/brickd/mds_lease.h"
#include "server/brickd/session_table.h"
#include "server/brickd/zeroer.h"
#include "shared/brick/control.h"

namespace pnfsrdma::brick {

// Answers the control protocol: checks the epoch of every changing call, then hands it to the part that
// knows. A queued call is checked again when its turn comes: an MDS that has been replaced, or whose claim
// has lapsed, changes nothing any more. Owned by the Brick; control loop only.
class ControlService final : public Control {
 public:
  struct Parts {
    EventLoop& loop;
    Pool& pool;
    Committer& committer;
    Zeroer& zeroer;
    SessionTable& sessions;
    DataOperations& data;
    FlushGate& gate;
    Counters& counters;
    MdsLease& lease;
  };
  // What a claim tells besides the pool's own facts.
  struct Advertised {
    uint64_t incarnation = 0;
    uint32_t grants_max = 0;
    uint32_t flush_methods = 0;
    xdr::List<Path, 16> paths;
  };

  explicit ControlService(Parts parts) : parts_(parts) {}

  Advertised& advertised() { return advertised_; }
  // A sign of life of the MDS with this epoch, if it is the one that has the brick.
  void renew_lease(uint64_t epoch);
  // The MDS was silent for its lease: its epoch is refused from here on, until the next claim.
  void lapse() { in_force_ = false; }

  void identify(Done<IdentifyResult> done) override;
  void claim(const ClaimArguments& arguments, Done<ClaimResult> done) override;
  void alloc(const AllocArguments& arguments, Done<RunsResult> done) override;
  void free(const BlocksArguments& arguments, Done<StatusResult> done) override;
  void map(const MapArguments& arguments, Done<StatusResult> done) override;
  void unmap(const BlocksArguments& arguments, Done<StatusResult> done) override;
  void list(const ListArguments& arguments, Done<ListResult> done) override;
  void survey(const SurveyArguments& arguments, Done<SurveyResult> done) override;
  void erase(const EraseArguments& arguments, Done<StatusResult> done) override;
  void open_session(const OpenSessionArguments& arguments, Done<StatusResult> done) override;
  void close_session(const CloseSessionArguments& arguments, Done<StatusResult> done) override;
  void list_sessions(Done<SessionsResult> done) override;
  void expose(const ExposeArguments& arguments, Done<ExposeResult> done) override;
  void withdraw(const WithdrawArguments& arguments, Done<StatusResult> done) override;
  void list_grants(const ListGrantsArguments& arguments, Done<GrantsResult> done) override;
  // For an MDS of before list_grants(): all in one turn.
  void list_all_grants(const ListAllGrantsArguments& arguments, Done<AllGrantsResult> done);
  void persist(const RangesArguments& arguments, Done<PersistResult> done) override;
  void zero(const RangesArguments& arguments, Done<StatusResult> done) override;
  void copy(const CopyArguments& arguments, Done<StatusResult> done) override;
  void statistics(Done<StatisticsResult> done) override;
  void loop_turns(Done<LoopTurnsResult> done) override;
  void session_traffic(Done<SessionTrafficResult> done) override;

 private:
  // kOk for the claimed epoch (and renews the lease), kLapsed for it when it is not in force, kStaleEpoch
  // below it, kInvalid for one nobody has claimed.
  Status check(uint64_t epoch);
  template <typename T>
  void answer(Done<T> done, T result);
  void change(uint64_t epoch, std::function<Status()> decide, Done<StatusResult> done);
  ClaimResult describe(Status status) const;

  Parts parts_;
  Advertised advertised_;
  bool in_force_ = false;  // the claim on the medium: made in this process, and its lease has not run out
  uint64_t control_persists_ = 0;
  uint64_t control_zeroed_bytes_ = 0;
};

}  // namespace pnfsrdma::brick

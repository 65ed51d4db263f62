// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "shared/base/clock.h"
#include "shared/base/result.h"
#include "shared/brick/control.h"

namespace pnfsrdma {
class EventLoop;
}
namespace pnfsrdma::rpc {
class TlsEndpoint;
}

namespace pnfsrdma::brick {

struct BrickClientOptions {
  // "/run/pnfsrdma/brick.sock" (a path: Unix socket) or "host:port".
  std::string address;
  // A call unanswered for this long fails with ETIMEDOUT and the connection is dropped: late answers are
  // never used.
  Milliseconds call_timeout{30000};
  // The same for calls that wait for bytes on their way to a disk: persist, zero, copy, and those that wait
  // for a handle's last flush, withdraw and close_session. That the brick lives is said by its null calls.
  Milliseconds data_timeout{600'000};
  // Pause before the first reconnect; it doubles up to the longest one.
  Milliseconds backoff_shortest{50};
  Milliseconds backoff_longest{2000};
  // How often a null call is sent: it keeps the brick's lease on us alive. Well below the shortest lease a
  // brick may be configured with (1 s).
  Milliseconds keepalive{500};
  // A null call unanswered for this long: the peer is dead or stopped, and the connection is dropped.
  Milliseconds silence{10000};
  // Asked before each call, keepalives included: while it says no, nothing is sent, and calls fail with ENOTCONN. An
  // MDS that may have been replaced is not to renew a lease. Null: always.
  std::function<bool()> may_speak{};
  // Asked before each connection is made. An endpoint: it is made with TLS and not without (RFC 9289), to a brick whose
  // certificate names the host of `address`. Null: without. An error: none is made. Null function: always without.
  std::function<Result<std::shared_ptr<rpc::TlsEndpoint>>()> tls{};
};

// The control protocol over ONC RPC, for one brick. It connects by itself and again after a loss, with
// back-off; calls made while it is not connected fail with ENOTCONN at the next turn. Belongs to the thread
// of `loop`, which must outlive it. Destroying it fails nothing any more: outstanding `done`s are dropped
// uncalled.
class BrickClient final : public Control {
 public:
  // What happens to the connection; called from the loop, never from inside one of our methods.
  struct Events {
    std::function<void()> on_connected;         // each time: claim first, then calls
    std::function<void(const Error&)> on_lost;  // after all outstanding calls have failed with ECONNRESET
    std::function<void(const Error&)> on_unreachable{};  // each attempt to connect that failed
  };

  BrickClient(EventLoop& loop, BrickClientOptions options, Events events);
  ~BrickClient() override;
  BrickClient(const BrickClient&) = delete;
  BrickClient& operator=(const BrickClient&) = delete;

  // Begins to connect.
  void start();
  bool connected() const;
  // Whether the connection is protected by TLS.
  bool secured() const;
  // The configuration has changed: a connection that would not be made so now is ended, and made again.
  void reassess_tls();
  // For how long the brick has said nothing on its connection; a keepalive is answered within milliseconds.
  // Zero while there is no connection.
  Milliseconds silence() const;
  const std::string& address() const;

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
  void persist(const RangesArguments& arguments, Done<PersistResult> done) override;
  void zero(const RangesArguments& arguments, Done<StatusResult> done) override;
  void copy(const CopyArguments& arguments, Done<StatusResult> done) override;
  void statistics(Done<StatisticsResult> done) override;
  void loop_turns(Done<LoopTurnsResult> done) override;
  void session_traffic(Done<SessionTrafficResult> done) override;

 private:
  class Link;
  std::shared_ptr<Link> link_;
};

}  // namespace pnfsrdma::brick

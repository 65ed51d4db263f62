// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "shared/base/event_loop.h"
#include "shared/base/guarded.h"
#include "shared/base/sync.h"
#include "shared/brick/blocks_protocol.h"
#include "shared/rpc/connection.h"
#include "shared/rpc/socket_address.h"
#include "shared/rpc_tls/endpoint.h"

namespace pnfsrdma::library::blocks {

using brick::blocks::AttachResult;
using brick::blocks::Procedure;

// The connection for the calls of a partition's owner: made and protected by the key (RFC 9289), attached, kept alive,
// and made once more when it is lost, by a thread of its own. Thread-safe but for what says otherwise.
class OwnerLink {
 public:
  struct Target {
    rpc::SocketAddress address;
    rpc_tls::SharedKey key;
  };
  // What the brick said when it took us in.
  using Attached = std::shared_ptr<const AttachResult>;
  using Done = std::function<void(Result<Bytes>)>;
  // Called in the link's thread.
  class Listener {
   public:
    // The brick has made a new attachment of us, and nobody else knows of it yet. `reclaims`: what was mapped under the
    // one before may be had again (blocks::How::kReclaim), under this epoch.
    virtual void attached(const Attached& now, std::optional<uint64_t> reclaims) = 0;
    // Somebody's mappings were taken away. `done` when it is known which of ours are there still.
    virtual void look_after_mappings(const Attached& now, std::function<void()> done) = 0;

   protected:
    ~Listener() = default;
  };

  // Begins to connect. Errors: ENOMEM.
  static Result<std::unique_ptr<OwnerLink>> start(Target target, Listener& listener);
  // The brick keeps the attachment for its lease, unless it was told to end it.
  ~OwnerLink();

  // Waits until the connection was made for the first time. Errors: those that do not pass by waiting, at once
  // (EACCES: another key or name; ENOTSUP: no partition with an owner; ECONNREFUSED, EHOSTUNREACH, ENOENT).
  Result<> wait_for_first(SteadyTime deadline);
  // Waits for the connection. Errors: why there is none.
  Result<Attached> attached(SteadyTime deadline);
  // The results. ENOTCONN: not sent; ECONNRESET, ETIMEDOUT: it may have been done.
  Result<Bytes> call(Procedure procedure, Bytes arguments, SteadyTime deadline);
  // The same in the link's thread, without waiting.
  void call_later(Procedure procedure, Bytes arguments, Done done);
  void after(Milliseconds delay, std::function<void()> task) { loop_.after(delay, std::move(task)); }
  // The brick does not know this attachment any more: makes another one.
  void disowned(uint64_t attachment);

 private:
  struct State {
    bool up = false;
    Attached attached;  // the last one; null: none was made yet
    Error error{ENOTCONN, "not connected yet"};
    bool failed = false;  // at least once since it was up
  };

  OwnerLink(Target target, Listener& listener, std::shared_ptr<rpc_tls::Endpoint> tls);
  void dial();
  void dialled(Result<FileDescriptor> socket);
  void secured(const Result<>& outcome);
  void attach(uint64_t again);
  void take_attached(const Result<Bytes>& reply, uint64_t asked, SteadyTime sent);
  void publish(AttachResult told, SteadyTime sent);
  void look_after_mappings(uint64_t epoch);
  void lost(const Error& reason);
  void keep_alive();
  void call_now(Procedure procedure, Bytes arguments, Milliseconds timeout, Done done);
  Error in_words(const Error& error) const;

  const Target target_;
  Listener& listener_;
  const std::shared_ptr<rpc_tls::Endpoint> tls_;
  const SystemClock clock_;
  EventLoop loop_{clock_};
  // The loop's.
  rpc::ConnectionPointer connection_;
  bool secured_ = false;
  bool ending_ = false;
  Milliseconds pause_;
  bool attaching_ = false;
  SteadyTime heard_{};  // the attachment was there when what was sent then was answered
  Attached known_;
  uint64_t known_epoch_ = 0;  // in which it was known what is mapped
  uint64_t keep_alive_turn_ = 0;

  Guarded<State> state_;
  Condition changed_;
  Thread thread_;
};

}  // namespace pnfsrdma::library::blocks

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include "server/mds/ops/compound_context.h"
#include "shared/nfs4/compound.h"
#include "shared/rpc/message.h"

namespace pnfsrdma::mds {

// A COMPOUND call as it came, whatever brought it: the network, or a test.
struct CompoundCall {
  Bytes record;        // owns what `arguments` points into
  ByteSpan arguments;  // of procedure COMPOUND
  uint32_t flavor = 0;
  Credentials caller;
  std::string peer;
  bool rdma = false;  // by RPC-over-RDMA, where a port says nothing
  std::weak_ptr<rpc::Connection> connection;
  std::shared_ptr<rpc::MemoryAccount> memory;  // of the connection; null: nobody counts

  CompoundCall() = default;
  CompoundCall(CompoundCall&&) = default;
  CompoundCall& operator=(CompoundCall&&) = default;
};

// How a call is refused: GARBAGE_ARGS, or denied to its host.
using CompoundRefusal = std::variant<rpc::AcceptStatus, rpc::AuthStatus>;
// The encoded results, or that.
using CompoundReply = std::expected<std::shared_ptr<const Bytes>, CompoundRefusal>;
using SendReply = std::move_only_function<void(CompoundReply)>;

// One COMPOUND (RFC 8881, 16.2): reads, runs and answers operation by operation, waits where a handler has
// to, and lets the reply go when all it may have seen is durable. Owned by Compounds; control loop only.
class Compound {
 public:
  Compound(Services& services, CompoundCall call, SendReply send, std::function<void(Compound&)> done);
  ~Compound();
  Compound(const Compound&) = delete;
  Compound& operator=(const Compound&) = delete;

  // Runs until it is answered or has to wait; a suspension's answer runs it on. `done` may delete it: the
  // last thing each of these does.
  void run();
  // Nothing it has done or seen can be vouched for any more: SERVERFAULT. Deletes it, as run() may.
  void refuse();

 private:
  enum class Step { kGoOn, kWait, kEnd, kAnswered };

  bool begin();
  Step run_operation();
  nfs4::ResultOperation run_handler();
  Step check_place(nfs4::Operation operation);
  Step refuse_stranger(nfs4::Operation operation);
  bool find_room(const nfs4::ArgumentOperation& arguments);
  void hold(size_t bytes);
  Step add_result(nfs4::Operation operation, const nfs4::ResultOperation& result);
  Step add_status(nfs4::Operation operation, nfs4::Status status);
  bool client_lost() const;
  uint32_t room() const;
  void replay();
  void finish();
  void send_when_durable();
  void send_when_written(Sequence told);
  void send_now();
  void send(CompoundReply reply);

  CompoundCall call_;
  SendReply send_;
  std::function<void(Compound&)> done_;
  CompoundContext context_;
  std::optional<nfs4::CompoundReader> reader_;
  std::optional<nfs4::CompoundReader::Item> item_;  // the operation that runs, kept while it waits
  SteadyTime operation_begun_;
  SteadyTime run_begun_;  // of the handler, which may run again after it has waited
  std::optional<nfs4::Operation> first_operation_;
  std::shared_ptr<Bytes> reply_;
  size_t held_ = 0;  // memory the reply takes, or will, as the connection counts it
  std::optional<nfs4::CompoundResultWriter> writer_;
  // Goes with this object: what the store calls when a batch is synced must not meet a dead one.
  std::shared_ptr<Compound*> self_;
};

// The COMPOUNDs that run now.
class Compounds {
 public:
  explicit Compounds(Services& services) : services_(services) {}
  Compounds(const Compounds&) = delete;
  Compounds& operator=(const Compounds&) = delete;

  // The entry point: of the network and of tests. `send` is called once, at once or later, unless this object
  // goes first.
  void start(CompoundCall call, SendReply send);
  size_t running() const { return running_.size(); }
  // The metadata can't be made durable any more: everybody who waits is told so.
  void refuse_all();

 private:
  Services& services_;
  std::unordered_map<Compound*, std::unique_ptr<Compound>> running_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/nfs4/compound.h"
#include "tests/sim/mds_network.h"
#include "tests/sim/model_mds.h"

namespace pnfsrdma::sim {

// The process of the MDS: RPC, COMPOUND, clients, sessions with a reply cache, callbacks; what the operations do
// is ModelMds'. It ends with whatever it is at, and starts again without sessions. It watches what its clients
// do: a slot goes on only when its last answer was taken, and a number is used again only for the same bytes.
class ModelServer final : public MdsNetwork::Server {
 public:
  // What can be ordered to fail.
  enum class Call { kLayoutGet, kLayoutCommit, kWrite, kCommit, kSetSize };

  ModelServer(ModelMds& mds, MdsNetwork& network, size_t clients, uint64_t seed);
  ~ModelServer() override;

  // It goes up, a call is done, a connection is bound.
  simulated::Bell changed;
  std::function<void(const std::string&)> on_violation;
  // For a trace; may be empty.
  std::function<void(const std::string&)> on_event;
  // An ordered error was answered for this file.
  std::function<void(size_t client, Call, size_t file)> on_error;

  // --- MdsNetwork::Server
  bool up() const override { return up_; }
  void message(const std::shared_ptr<Wire>& wire, Bytes record) override;

  // Works on calls of that client: they outlive it.
  bool serves(size_t client) const;
  // Nothing of what it was at goes on; layouts and sessions are gone then.
  void stop();
  void start();
  // The client is gone, with its sessions.
  void forget(size_t client);
  void recall_any(size_t client, uint32_t keep);
  void order_error(size_t client, Call call, Status status) { ordered_.push_back({client, call, status}); }
  void forget_orders();
  // Nobody calls any more, but to renew leases: what was answered a while ago has been taken.
  void check_settled() const;

 private:
  struct Slot {
    uint32_t sequence = 0;
    bool busy = false;
    bool kept = false;  // the client has asked for it
    bool taken = true;  // the client has the answer
    Bytes request, reply;
    SteadyTime answered{};
  };
  struct CallbackSlot {
    uint32_t sequence = 0;
    bool busy = false;
  };
  struct Session {
    nfs4::SessionId id{};
    size_t client = 0;
    std::vector<Slot> slots;
    std::vector<CallbackSlot> callback_slots;
    std::weak_ptr<Wire> wire;
  };
  struct Client {
    nfs4::Verifier verifier{};
    uint64_t id = 0;
    bool confirmed = false;
    uint32_t sequence = 0;  // of the last CREATE_SESSION
    nfs4::CreateSessionResult created;
  };
  struct Order {
    size_t client = 0;
    Call call;
    Status status;
  };
  // One COMPOUND.
  struct Compound {
    size_t client = 0;
    ModelMds::File* file = nullptr;
    Bytes data;  // of READ, until it is encoded
  };
  class Serving;
  class ToCallbacks;

  void do_later(std::function<void()> job);
  void work();
  void violated(const std::string& what) const { on_violation("the MDS: " + what); }

  // sessions
  void serve(const std::shared_ptr<Wire>& wire, const Bytes& record);
  nfs4::ResultOperation outside(const std::shared_ptr<Wire>& wire, const nfs4::ArgumentOperation& operation);
  nfs4::ExchangeIdResult exchange_id(size_t client, const nfs4::ExchangeIdArguments& arguments);
  nfs4::CreateSessionResponse create_session(const std::shared_ptr<Wire>& wire,
                                             const nfs4::CreateSessionArguments& arguments);
  void in_session(const std::shared_ptr<Wire>& wire, uint32_t xid, const Bytes& record,
                  const nfs4::SequenceArguments& sequence, nfs4::CompoundReader& reader);
  void execute(const std::shared_ptr<Wire>& wire, uint32_t xid, const Bytes& record,
               const std::shared_ptr<Session>& session, const nfs4::SequenceArguments& sequence,
               nfs4::CompoundReader& reader);
  static std::function<void()> taken(const std::shared_ptr<Session>& session, uint32_t slot,
                                     uint32_t sequence);
  std::shared_ptr<Session> session_of(size_t client) const;

  // operations (server_operations.cc)
  nfs4::ResultOperation answer(Compound& compound, const nfs4::ArgumentOperation& operation);
  nfs4::ResultOperation answer_on_file(const Compound& compound, const nfs4::ArgumentOperation& operation);
  nfs4::GetAttributesResult attributes(const Compound& compound) const;
  nfs4::SetAttributesResponse set_attributes(const Compound& compound,
                                             const nfs4::SetAttributesArguments& wanted);
  nfs4::ReadResponse read(Compound& compound, const nfs4::ReadArguments& wanted);
  nfs4::TestStateidResult test(size_t client, const nfs4::TestStateidArguments& wanted);
  std::optional<Status> not_now(const nfs4::ArgumentOperation& operation);
  std::optional<Status> ordered(size_t client, Call call, const ModelMds::File& file);
  void wait_for_brick(const ModelMds::File& file);

  // callbacks (server_callbacks.cc)
  void recall(size_t client, const nfs4::CallbackLayoutRecallArguments& arguments);
  // None: the session is gone.
  std::optional<Status> call_back(size_t client, const nfs4::CallbackArgumentOperation& operation);
  Bytes callback_record(const Session& session, uint32_t xid, uint32_t slot,
                        const nfs4::CallbackArgumentOperation& operation) const;
  std::optional<Status> callback_answer(uint32_t xid, bool& again);

  ModelMds& mds_;
  MdsNetwork& network_;
  Dice dice_;
  bool up_ = true;
  uint64_t host_;  // of what it is at
  SteadyTime grace_end_{};
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
  simulated::Bell job_came_;
  std::map<size_t, int> serving_;
  std::map<size_t, Client> clients_;
  std::map<nfs4::SessionId, std::shared_ptr<Session>> sessions_;
  uint64_t next_number_ = 1;  // of clients and sessions
  std::vector<Order> ordered_;
  std::vector<std::unique_ptr<ToCallbacks>> callbacks_;
  uint32_t next_xid_ = 1;
  std::map<uint32_t, std::optional<Bytes>> callback_replies_;  // of those that are waited for
  simulated::Bell callback_answered_;
};

}  // namespace pnfsrdma::sim

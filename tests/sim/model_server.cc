// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/model_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "shared/base/check.h"
#include "shared/base/sync.h"
#include "shared/rpc/message.h"

namespace pnfsrdma::sim {

namespace {

constexpr auto kTakenWithin = Milliseconds(500);
constexpr uint32_t kSlotsLeast = 2, kSlotsMost = 8, kCallbackSlotsMost = 4;

Bytes message_of(uint32_t xid, ByteSpan results) {
  Bytes message;
  xdr::Encoder encoder(message);
  xdr::encode(encoder, rpc::ReplyHeader::success(xid));
  message.insert(message.end(), results.begin(), results.end());
  return message;
}

Bytes results_of(const nfs4::ResultOperation& result) {
  Bytes results;
  nfs4::CompoundResultWriter(results, {}).add(result);
  return results;
}

}  // namespace

// While it lives a call of the client is worked on.
class ModelServer::Serving {
 public:
  Serving(ModelServer& server, size_t client) : server_(server), count_(server.serving_[client]) { ++count_; }
  ~Serving() {
    --count_;
    server_.changed.ring();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

 private:
  ModelServer& server_;
  int& count_;
};

class ModelServer::ToCallbacks final : public Callbacks {
 public:
  ToCallbacks(ModelServer& server, size_t client) : server_(server), client_(client) {}
  void recall(const nfs4::CallbackLayoutRecallArguments& arguments) override {
    server_.recall(client_, arguments);
  }

 private:
  ModelServer& server_;
  const size_t client_;
};

ModelServer::ModelServer(ModelMds& mds, MdsNetwork& network, size_t clients, uint64_t seed)
    : mds_(mds), network_(network), dice_(seed), host_(simulated::Scheduler::current().make_host()) {
  for (size_t client = 0; client < clients; ++client) {
    callbacks_.push_back(std::make_unique<ToCallbacks>(*this, client));
    mds.add_client(client, *callbacks_.back());
  }
  network.serve(*this);
}

ModelServer::~ModelServer() {
  if (up_) stop();
}

bool ModelServer::serves(size_t client) const {
  const auto found = serving_.find(client);
  return found != serving_.end() && found->second > 0;
}

void ModelServer::stop() {
  up_ = false;
  simulated::Scheduler::current().kill(host_);
  network_.close_all();
  jobs_.clear();
  idle_ = 0;
  serving_.clear();
  sessions_.clear();
  callback_replies_.clear();
}

void ModelServer::start() {
  mds_.restart_layouts();
  // Clients are known again as a rule: then only their sessions are gone.
  if (dice_.one_in(3)) clients_.clear();
  if (dice_.one_in(3)) grace_end_ = steady_now() + dice_.microseconds(1000, 300000);
  host_ = simulated::Scheduler::current().make_host();
  up_ = true;
  changed.ring();
}

void ModelServer::forget(size_t client) {
  clients_.erase(client);
  std::erase_if(sessions_, [&](const auto& entry) { return entry.second->client == client; });
}

void ModelServer::forget_orders() {
  ordered_.clear();
}

void ModelServer::check_settled() const {
  for (const auto& [id, session] : sessions_) {
    for (size_t slot = 0; slot < session->slots.size(); ++slot) {
      const Slot& last = session->slots[slot];
      if (!last.taken && steady_now() - last.answered > kTakenWithin)
        violated(fmt::format("client {} has never taken the answer of slot {}", session->client, slot));
    }
  }
}

void ModelServer::do_later(std::function<void()> job) {
  if (!up_) return;
  jobs_.push_back(std::move(job));
  job_came_.ring();
  if (jobs_.size() <= idle_) return;
  const simulated::Scheduler::OnHost on_host(host_);
  simulated::Thread([this] { work(); });
}

void ModelServer::work() {
  for (;;) {
    while (jobs_.empty()) {
      ++idle_;
      (void)job_came_.wait(SteadyTime::max(), "a call of a client");
      --idle_;
    }
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    job();
  }
}

void ModelServer::message(const std::shared_ptr<Wire>& wire, Bytes record) {
  const auto start = rpc::peek_message(record);
  CHECK(start.has_value());
  if (start->type == rpc::MessageType::kReply) {
    const auto awaited = callback_replies_.find(start->xid);
    if (awaited != callback_replies_.end()) awaited->second = std::move(record);
    return callback_answered_.ring();
  }
  do_later([this, wire, record = std::move(record)] { serve(wire, record); });
}

void ModelServer::serve(const std::shared_ptr<Wire>& wire, const Bytes& record) {
  xdr::Decoder decoder(record);
  const auto header = rpc::decode_call(decoder);
  CHECK(header.has_value());
  auto reader = nfs4::CompoundReader::open(decoder.rest());
  CHECK(reader.has_value() && reader->left() > 0);
  const auto first = reader->next();
  CHECK(first.arguments.has_value());
  if (const auto* sequence = std::get_if<nfs4::SequenceArguments>(&*first.arguments))
    return in_session(wire, header->xid, record, *sequence, *reader);
  wire->to_client(message_of(header->xid, results_of(outside(wire, *first.arguments))));
}

nfs4::ResultOperation ModelServer::outside(const std::shared_ptr<Wire>& wire,
                                           const nfs4::ArgumentOperation& operation) {
  if (const auto* exchange = std::get_if<nfs4::ExchangeIdArguments>(&operation))
    return nfs4::ExchangeIdResponse(exchange_id(wire->client, *exchange));
  if (const auto* create = std::get_if<nfs4::CreateSessionArguments>(&operation))
    return create_session(wire, *create);
  if (const auto* bind = std::get_if<nfs4::BindConnectionToSessionArguments>(&operation)) {
    const auto found = sessions_.find(bind->session_id);
    if (found == sessions_.end()) return nfs4::BindConnectionToSessionResponse(Status::kBadSession);
    found->second->wire = wire;
    changed.ring();
    return nfs4::BindConnectionToSessionResponse(
        nfs4::BindConnectionToSessionResult{bind->session_id, nfs4::DirectionFromServer::kBoth, false});
  }
  if (const auto* destroy = std::get_if<nfs4::DestroySessionArguments>(&operation)) {
    const bool known = sessions_.erase(destroy->session_id) > 0;
    return nfs4::DestroySessionResponse(known ? Status::kOk : Status::kBadSession);
  }
  return nfs4::status_result(nfs4::operation_of(operation), Status::kOk);
}

nfs4::ExchangeIdResult ModelServer::exchange_id(size_t number, const nfs4::ExchangeIdArguments& arguments) {
  Client& client = clients_[number];
  if (client.id == 0 || client.verifier != arguments.owner.verifier)
    client = {.verifier = arguments.owner.verifier, .id = next_number_++};
  nfs4::ExchangeIdResult result;
  result.client_id = client.id;
  result.sequence_id = client.sequence + 1;
  result.flags = nfs4::kExchangeUsePnfsMds | (client.confirmed ? nfs4::kExchangeConfirmed : 0);
  return result;
}

nfs4::CreateSessionResponse ModelServer::create_session(const std::shared_ptr<Wire>& wire,
                                                        const nfs4::CreateSessionArguments& arguments) {
  const auto known = clients_.find(wire->client);
  if (known == clients_.end() || known->second.id != arguments.client_id) return Status::kStaleClientId;
  Client& client = known->second;
  const auto made = sessions_.find(client.created.session_id);
  if (arguments.sequence_id == client.sequence && made != sessions_.end()) {
    made->second->wire = wire;
    return client.created;
  }
  if (arguments.sequence_id != client.sequence + 1 && arguments.sequence_id != client.sequence)
    return Status::kSeqMisordered;
  client.sequence = arguments.sequence_id;
  client.confirmed = true;
  nfs4::CreateSessionResult& result = client.created;
  result.sequence_id = arguments.sequence_id;
  const uint64_t number = next_number_++;
  std::memcpy(result.session_id.data(), &number, sizeof number);
  result.fore_channel = arguments.fore_channel;
  result.fore_channel.max_requests = static_cast<uint32_t>(
      std::min<uint64_t>(arguments.fore_channel.max_requests, dice_.between(kSlotsLeast, kSlotsMost)));
  result.back_channel = arguments.back_channel;
  result.back_channel.max_requests = static_cast<uint32_t>(dice_.between(1, kCallbackSlotsMost));
  auto session = std::make_shared<Session>();
  session->id = result.session_id;
  session->client = wire->client;
  session->slots.resize(result.fore_channel.max_requests);
  session->callback_slots.resize(result.back_channel.max_requests);
  session->wire = wire;
  sessions_[session->id] = session;
  changed.ring();
  return result;
}

std::shared_ptr<ModelServer::Session> ModelServer::session_of(size_t client) const {
  const auto known = clients_.find(client);
  if (known == clients_.end()) return nullptr;
  const auto found = sessions_.find(known->second.created.session_id);
  return found != sessions_.end() ? found->second : nullptr;
}

std::function<void()> ModelServer::taken(const std::shared_ptr<Session>& session, uint32_t slot,
                                         uint32_t sequence) {
  return [session, slot, sequence] {
    if (session->slots[slot].sequence == sequence) session->slots[slot].taken = true;
  };
}

void ModelServer::in_session(const std::shared_ptr<Wire>& wire, uint32_t xid, const Bytes& record,
                             const nfs4::SequenceArguments& sequence, nfs4::CompoundReader& reader) {
  const auto refuse = [&](Status status) {
    wire->to_client(message_of(xid, results_of(nfs4::SequenceResponse(status))));
  };
  const auto found = sessions_.find(sequence.session_id);
  if (found == sessions_.end()) return refuse(Status::kBadSession);
  const std::shared_ptr<Session> session = found->second;
  if (session->wire.lock() != wire) return refuse(Status::kConnNotBoundToSession);
  if (sequence.slot_id >= session->slots.size())
    return violated(fmt::format("client {} uses slot {}", session->client, sequence.slot_id));
  const Slot& slot = session->slots[sequence.slot_id];
  const auto where = [&] {
    return fmt::format("client {}, slot {}: number {} behind {}", session->client, sequence.slot_id,
                       sequence.sequence_id, slot.sequence);
  };
  if (sequence.sequence_id == slot.sequence) {
    if (slot.request != record) return violated(where() + " is another call");
    if (on_event) on_event(fmt::format("client {} sends a call again", session->client));
    if (slot.busy) return refuse(Status::kDelay);
    const bool known = slot.kept || dice_.one_in(2);
    const auto uncached = nfs4::SequenceResponse(Status::kRetryUncachedRep);
    wire->to_client(known ? slot.reply : message_of(xid, results_of(uncached)),
                    taken(session, sequence.slot_id, sequence.sequence_id));
    return;
  }
  if (sequence.sequence_id != slot.sequence + 1) return violated(where() + " is out of order");
  if (slot.busy) return violated(where() + " while that one is worked on");
  if (!slot.taken) return violated(where() + ", whose answer nobody has taken");
  if (dice_.one_in(200)) return refuse(Status::kDelay);
  execute(wire, xid, record, session, sequence, reader);
}

void ModelServer::execute(const std::shared_ptr<Wire>& wire, uint32_t xid, const Bytes& record,
                          const std::shared_ptr<Session>& session, const nfs4::SequenceArguments& sequence,
                          nfs4::CompoundReader& reader) {
  const Serving serving(*this, session->client);
  Slot& slot = session->slots[sequence.slot_id];
  slot = {.sequence = sequence.sequence_id,
          .busy = true,
          .kept = sequence.cache_this,
          .taken = false,
          .request = record,
          .reply = {},
          .answered = {}};
  Bytes results;
  nfs4::CompoundResultWriter writer(results, {});
  nfs4::SequenceResult sequenced;
  sequenced.session_id = session->id;
  sequenced.sequence_id = sequence.sequence_id;
  sequenced.slot_id = sequence.slot_id;
  sequenced.highest_slot_id = sequenced.target_highest_slot_id =
      static_cast<uint32_t>(session->slots.size()) - 1;
  if (!mds_.revoked(session->client).empty()) sequenced.status_flags = nfs4::kSequenceRecallableStateRevoked;
  writer.add(nfs4::SequenceResponse(sequenced));
  Compound compound{.client = session->client};
  while (reader.left() > 0) {
    const auto item = reader.next();
    CHECK(item.arguments.has_value());
    const nfs4::ResultOperation result = answer(compound, *item.arguments);
    writer.add(result);
    if (nfs4::status_of(result) != Status::kOk) break;
  }
  slot.reply = message_of(xid, results);
  slot.busy = false;
  slot.answered = steady_now();
  wire->to_client(slot.reply, taken(session, sequence.slot_id, sequence.sequence_id));
}

}  // namespace pnfsrdma::sim

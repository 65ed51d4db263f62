// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/mds/ops/test_server.h"

#include "shared/base/check.h"

namespace pnfsrdma::mds {

namespace {

std::unique_ptr<Namespace> open_names(TestHost& host) {
  auto names = Namespace::open(host.store, host.clock, ++host.starts, host.options);
  CHECK(names.has_value());
  return std::move(*names);
}

}  // namespace

TestServer::TestServer(TestHost& host_in, std::vector<Export> exported, bool same_boot, bool served_before)
    : host(host_in),
      names(open_names(host)),
      exports(*names, std::move(exported)),
      handles(HandleKeys::open(host.store, host.random, host.clock, exports, served_before).value()),
      clients(host.clock, host.random, limits.lease),
      memory(host.clock, host.memory_limits),
      state_memory(memory, clients),
      sessions(host.random),
      opens(&state_memory),
      locks(&state_memory),
      state_store(host.store),
      grace(host.clock),
      callbacks(host.loop, clients, sessions, limits.lease),
      lock_waiters(host.clock, locks, callbacks, limits.lease),
      delegation_table(&state_memory),
      delegations(host.loop, delegation_table, callbacks, state_store, counters, limits.lease),
      layouts(*names),
      leases(clients, sessions, opens, locks, delegations, state_store, layouts, counters),
      user_groups(host.loop, name_service),
      services{host.clock,  host.random, limits,    identity, exports, *handles,     host.store,
               *names,      clients,     sessions,  opens,    grace,   state_store,  leases,
               layouts,     data,        callbacks, counters, locks,   lock_waiters, host.loop.turns(),
               user_groups, delegations},
      compounds(services) {
  names->set_in_use(
      [this](InodeId inode) { return opens.is_open(inode) || delegation_table.is_delegated(inode); });
  delegations.set_unused([this](InodeId inode) {
    if (!opens.is_open(inode)) services.layouts.on_last_close({inode}, [] {});
  });
  delegations.set_fence(
      [this](ClientId client, InodeId inode, std::function<void(LayoutConflicts::Fence)> done) {
        services.layouts.before_delegation_revoked(client, inode, std::move(done));
      });
  const auto expiring =
      recover_state({.same_host_boot = same_boot, .lease_before = host.lease_before}, state_store, clients,
                    opens, locks, delegation_table, grace, limits.lease);
  CHECK(expiring.has_value());
  leases.resume(*expiring);
}

void TestServer::use(LayoutConflicts& real_layouts, DataOperations& real_data) {
  // References can't be set anew; an object made in the same place is the same to whoever refers to it.
  std::destroy_at(&services);
  std::construct_at(
      &services,
      Services{host.clock,   host.random, limits,    identity, exports, *handles,     host.store,
               *names,       clients,     sessions,  opens,    grace,   state_store,  leases,
               real_layouts, real_data,   callbacks, counters, locks,   lock_waiters, host.loop.turns(),
               user_groups,  delegations});
}

std::shared_ptr<std::shared_ptr<const Bytes>> TestServer::begin(const Operations& operations,
                                                                const Credentials& who,
                                                                uint32_t minor_version) {
  nfs4::CompoundArguments arguments;
  arguments.header = {.tag = "test", .minor_version = minor_version};
  arguments.operations = operations;
  CompoundCall call;
  call.record = xdr::encode_to_bytes(arguments);
  call.arguments = call.record;
  call.flavor = flavor;
  call.caller = who;
  call.peer = peer;
  call.rdma = rdma;
  auto reply = std::make_shared<std::shared_ptr<const Bytes>>();
  compounds.start(std::move(call), [reply](CompoundReply sent) {
    CHECK(sent.has_value());
    *reply = *std::move(sent);
  });
  return reply;
}

nfs4::CompoundResults TestServer::call(const Operations& operations, const Credentials& who,
                                       uint32_t minor_version) {
  const auto reply = begin(operations, who, minor_version);
  for (int turn = 0; !*reply && turn < 100; ++turn) host.turn();
  CHECK(*reply != nullptr);
  auto results = xdr::decode_from<nfs4::CompoundResults>(**reply);
  CHECK(results.has_value());
  return std::move(*results);
}

TestClient::TestClient(TestServer& server_in, const std::string& name, uint64_t incarnation)
    : server(server_in) {
  owner.owner = nfs4::OwnerId(as_bytes(name));
  store_big_endian(owner.verifier.data(), incarnation);
}

nfs4::ExchangeIdResponse TestClient::exchange_id(uint32_t flags) {
  nfs4::ExchangeIdArguments arguments;
  arguments.owner = owner;
  arguments.flags = flags;
  const auto results = server.call({arguments}, who);
  return response_at<nfs4::ExchangeIdResponse>(results, 0);
}

nfs4::CreateSessionArguments TestClient::session_arguments(uint32_t sequence) const {
  nfs4::CreateSessionArguments arguments;
  arguments.client_id = id;
  arguments.sequence_id = sequence;
  arguments.fore_channel = {.max_request_size = 1 << 20,
                            .max_response_size = 1 << 20,
                            .max_response_size_cached = 4096,
                            .max_operations = 16,
                            .max_requests = 8,
                            .rdma_ird = {}};
  arguments.back_channel = {.max_request_size = 4096,
                            .max_response_size = 4096,
                            .max_response_size_cached = 0,
                            .max_operations = 2,
                            .max_requests = 4,
                            .rdma_ird = {}};
  return arguments;
}

nfs4::CreateSessionResponse TestClient::create_session(uint32_t sequence) {
  const auto results = server.call({session_arguments(sequence)}, who);
  const auto& response = response_at<nfs4::CreateSessionResponse>(results, 0);
  if (response.ok()) {
    session = response.result.session_id;
    seqid = 0;
    create_sequence = sequence;
  }
  return response;
}

void TestClient::connect() {
  const auto exchanged = exchange_id();
  CHECK(exchanged.ok());
  id = exchanged.result.client_id;
  CHECK(create_session(exchanged.result.sequence_id).ok());
  CHECK(status({nfs4::ReclaimCompleteArguments{}}) == nfs4::Status::kOk);
}

nfs4::SequenceArguments TestClient::next_sequence() {
  return {
      .session_id = session, .sequence_id = ++seqid, .slot_id = 0, .highest_slot_id = 0, .cache_this = cache};
}

nfs4::CompoundResults TestClient::call(Operations operations) {
  operations.insert(operations.begin(), next_sequence());
  auto results = server.call(operations, who);
  results.operations.erase(results.operations.begin());
  return results;
}

nfs4::OpenArguments TestClient::open_arguments(const std::string& name, uint32_t access, uint32_t deny,
                                               const std::string& open_owner) const {
  nfs4::OpenArguments arguments;
  arguments.share_access = access;
  arguments.share_deny = deny;
  arguments.owner.owner = nfs4::OwnerId(as_bytes(open_owner));
  arguments.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kNull>(nfs4::Component(name));
  return arguments;
}

nfs4::OpenResponse TestClient::open(const nfs4::OpenArguments& arguments) {
  const auto results = call({nfs4::PutRootFileHandleArguments{}, arguments, nfs4::GetFileHandleArguments{}});
  if (results.operations.size() > 2) {
    last_handle = response_at<nfs4::GetFileHandleResponse>(results, 2).result.object;
  }
  return response_at<nfs4::OpenResponse>(results, 1);
}

Operations exchanging(const NamedFile& first, const NamedFile& second) {
  Operations operations;
  const auto add = [&](const Operations& more) {
    operations.insert(operations.end(), more.begin(), more.end());
  };
  for (const NamedFile* one : {&first, &second}) {
    nfs4::VerifyArguments verify;
    verify.attributes.file_handle = one->file;
    add(one->directory);
    add({nfs4::LookupArguments{one->name}, verify});
  }
  add(first.directory);
  add({nfs4::SaveFileHandleArguments{}});
  add(second.directory);
  add({nfs4::RenameArguments{first.name, second.name + "/exchange"}});
  return operations;
}

}  // namespace pnfsrdma::mds

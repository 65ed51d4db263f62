// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/brick.h"

#include "server/brickd/blocks_server.h"
#include "server/brickd/blocks_service.h"
#include "server/brickd/boot_id.h"
#include "server/brickd/committer.h"
#include "server/brickd/control_server.h"
#include "server/brickd/control_service.h"
#include "server/brickd/counters.h"
#include "server/brickd/data_operations.h"
#include "server/brickd/flush_gate.h"
#include "server/brickd/mds_lease.h"
#include "server/brickd/pool.h"
#include "server/brickd/read_ahead.h"
#include "server/brickd/reaper.h"
#include "server/brickd/session_table.h"
#include "server/brickd/watchers.h"
#include "server/brickd/zeroer.h"
#include "shared/base/deferred_destruction.h"
#include "shared/base/event_loop.h"
#include "shared/base/lifetime.h"
#include "shared/base/log.h"
#include "shared/nfs4/pmem_layout.h"
#include "shared/rdma/transport.h"
#include "shared/rpc/universal_address.h"
#include "shared/rpc_tls/endpoint.h"

namespace pnfsrdma::brick {
namespace {

// Asked by trying, on the pool's own memory, because that is what decides: a device that flushes by itself
// does so only where the memory is persistent, and not every mapping can be registered with a device at all.
Result<bool> flushes_natively(rdma::Transport& transport, Pool& pool) {
  class Probe final : public rdma::Flusher {
    Result<> flush(MutableByteSpan) override { return {}; }
  } flusher;
  constexpr size_t kProbe = 4096;
  const MutableByteSpan memory = pool.block(0).first(kProbe);
  const auto domain = transport.make_protection_domain();
  constexpr rdma::Access kRights = rdma::Access::kRemoteRead | rdma::Access::kRemoteWrite;
  TRY(transport.register_region(domain, memory, kRights));
  return transport.register_region(domain, memory, kRights | rdma::Access::kRemoteFlush, &flusher)
      .has_value();
}

// "127.0.0.1:20051" in the form of netaddr4; a name that is none (the memory transport's) as it is.
Path path_of(const std::string& netid, const std::string& address) {
  const auto parsed = rpc::SocketAddress::parse(address);
  const std::string universal = parsed ? rpc::to_universal_address(*parsed) : std::string();
  if (universal.empty() || netid == "memory") return {netid, address};
  return {rpc::netid_of(*parsed, netid == "rdma"), universal};
}

}  // namespace

// In creation order: what stands below uses what stands above, and goes first.
class Brick::Parts {
 public:
  Parts(EventLoop& event_loop, std::unique_ptr<Pool> opened, const BootId& boot, Random& random,
        const BrickOptions& options)
      : loop(event_loop),
        pool(std::move(opened)),
        gate(pool->persistence(), pool->superblock().content().uuid, boot,
             pool->superblock().content().unsafe_events,
             [this, alive = lifetime.token()](const Error& error) { note_unsafe(error, alive); }),
        committer(loop, *pool, gate),
        zeroer(loop, *pool, gate, committer),
        reaper(loop, pool->persistence().blocks()),
        read_ahead(loop, *pool),
        sessions({loop, *pool, reaper, read_ahead, destruction, random, {gate, counters, watchers}},
                 options.limits),
        data(loop, *pool, gate),
        lease(loop, options.lease, [this] { lease_expired(); }),
        service({loop, *pool, committer, zeroer, sessions, data, gate, counters, lease}),
        server(loop, service) {
    service.advertised().incarnation = random.next_u64();
    service.advertised().grants_max = options.limits.grants_per_session;
    service.advertised().flush_methods = nfs4::kFlushCommitMessage | nfs4::kFlushLayoutCommit;
    if (pool->superblock().has_owner_by_key()) serve_blocks(random, options.lease);
  }

  Result<> check_for_mds() const {
    if (!blocks) return {};
    return fail(EPERM, "the partition has an owner by a key: it is not for an MDS");
  }

  void serve_blocks(Random& random, Milliseconds lease_of_attachments) {
    const format::Ownership& ownership = pool->superblock().content().ownership;
    blocks = std::make_unique<BlocksService>(BlocksService::Parts{loop, *pool, committer, zeroer, sessions,
                                                                  data, gate, random, service.advertised()},
                                             lease_of_attachments);
    auto key = rpc_tls::Endpoint::open_key(rpc_tls::Role::kServer, {ownership.name.data(), ownership.secret});
    if (!key) return log_error("brick", "owner-key error=\"{}\"", key.error().to_string());
    owners = std::make_unique<BlocksServer>(loop, *blocks, *std::move(key));
  }

  // Before the members whose threads still flush.
  ~Parts() { lifetime.end(); }

  // In whatever thread flushed, which may be while this ends: the verifier has changed already, the medium
  // follows.
  void note_unsafe(const Error& error, const std::weak_ptr<const void>& alive) {
    log_error("brick", "flush-failed error=\"{}\" the verifier changes, clients rewrite", error.to_string());
    loop.post(GuardedCallback(alive, [this] {
      // When the table's own flush has failed there is only the page cache left to remember it.
      if (committer.failed()) return static_cast<void>(pool->superblock().add_unsafe_event());
      committer.submit(
          [this] { return Committer::Outcome{Status::kOk, pool->superblock().add_unsafe_event()}; },
          [](Status) {});
    }));
  }

  // Whatever the MDS believes of this brick is void from here on, and it is told so by the end of its
  // connection: it claims anew when it runs again.
  void lease_expired() {
    const uint64_t epoch = pool->superblock().epoch();
    log_warning("brick", "lease-expired epoch={} sessions={} grants={}: all are revoked", epoch,
                sessions.sessions(), sessions.grants());
    service.lapse();
    sessions.close_all();
    server.disconnect(epoch);
  }

  Lifetime lifetime;
  EventLoop& loop;
  std::unique_ptr<Pool> pool;
  FlushGate gate;
  Counters counters;
  Watchers watchers;
  Committer committer;
  Zeroer zeroer;
  Reaper reaper;
  ReadAhead read_ahead;
  DeferredDestruction destruction{"brick-destroy"};
  SessionTable sessions;
  DataOperations data;
  MdsLease lease;
  ControlService service;
  ControlServer server;
  std::unique_ptr<BlocksService> blocks;  // these two: of a partition with an owner of its own
  std::unique_ptr<BlocksServer> owners;
  std::vector<std::unique_ptr<rdma::Listener>> listeners;
};

Brick::Brick(EventLoop& loop, std::unique_ptr<Pool> pool, const BootId& boot, Random& random,
             BrickOptions options)
    : parts_(std::make_unique<Parts>(loop, std::move(pool), boot, random, options)) {
  const BlockCounts& blocks = parts_->pool->table().counts();
  log_info("brick",
           "opened kind={} durability={} blocks={} clean={} dirty={} allocated={} parked={} damaged={}",
           to_string(parts_->pool->mapping().medium().kind),
           to_string(parts_->pool->persistence().durability()), parts_->pool->block_count(), blocks.clean,
           blocks.dirty, blocks.allocated, blocks.parked, blocks.damaged);
}

Brick::~Brick() = default;

Control& Brick::control() {
  return parts_->service;
}

Result<std::string> Brick::listen_data(rdma::Transport& transport, const DataEndpoint& endpoint) {
  TRY_ASSIGN(const bool native_flush, flushes_natively(transport, *parts_->pool));
  // Requests come in a thread of the transport's; one that reaches a brick that is gone is dropped, which
  // rejects it.
  const auto on_request = [parts = parts_.get(), token = parts_->lifetime.token(), &loop = parts_->loop,
                           &transport, native_flush](std::unique_ptr<rdma::ConnectionRequest> request) {
    auto shared = std::make_shared<std::unique_ptr<rdma::ConnectionRequest>>(std::move(request));
    loop.post([parts, token, &transport, native_flush, shared] {
      if (!token.expired()) parts->sessions.admit(transport, native_flush, std::move(*shared));
    });
  };
  TRY_ASSIGN(auto listener, transport.listen(endpoint.listen, on_request));
  const std::string address = listener->address();

  ControlService::Advertised& advertised = parts_->service.advertised();
  std::vector<std::string> names = endpoint.advertise;
  if (names.empty()) names.push_back(address);
  if (!endpoint.advertised) names.clear();
  auto paths = advertised.paths;
  for (const std::string& name : names) {
    Path path = path_of(endpoint.netid, name);
    if (path.address.size() > path.address.kMax || paths.size() == paths.kMax) {
      return fail(EINVAL, "advertising " + name + ": the address is too long, or there are more than 16");
    }
    paths.push_back(std::move(path));
  }
  // What cannot be advertised is not listened on either.
  advertised.paths = std::move(paths);
  if (native_flush) advertised.flush_methods |= nfs4::kFlushNative;
  parts_->listeners.push_back(std::move(listener));
  log_info("brick", "listening transport={} address={} native-flush={}", transport.name(), address,
           native_flush);
  return address;
}

bool Brick::has_owner_by_key() const {
  return parts_->pool->superblock().has_owner_by_key();
}

Result<std::string> Brick::serve_owner(const std::string& address) {
  if (!parts_->owners) return fail(EPERM, "the pool has no owner by a key: it is for an MDS");
  TRY_ASSIGN(std::string bound, parts_->owners->listen(address));
  log_info("brick", "owner address={} key=required", bound);
  return bound;
}

Result<> Brick::serve_control_unix(const std::string& path) {
  TRY(parts_->check_for_mds());
  const auto address = parts_->server.listen("unix:" + path);
  if (!address && address.error().number() == ENOENT) {
    return fail(ENOENT, "listen on " + path + " (make its folder, or set control.unix to another path)");
  }
  TRY(address);
  log_info("brick", "control address={}", *address);
  return {};
}

Result<std::string> Brick::serve_control_tcp(const std::string& address,
                                             std::shared_ptr<rpc::TlsEndpoint> tls) {
  TRY(parts_->check_for_mds());
  const bool protects = tls != nullptr;
  TRY_ASSIGN(std::string bound, parts_->server.listen(address, std::move(tls)));
  if (protects) {
    log_info("brick", "control address={} tls=required", bound);
  } else {
    log_warning("brick", "control address={} unauthenticated: for trusted networks only", bound);
  }
  return bound;
}

void Brick::reassess_tls() {
  parts_->server.reassess_tls();
}

}  // namespace pnfsrdma::brick

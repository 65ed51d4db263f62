// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "shared/nfs4/pmem_layout.h"
#include "tests/sim/brick.h"
#include "tests/sim/network.h"

namespace pnfsrdma::sim {

using BrickVerifier = xdr::FixedOpaque<8>;

// A brick by the rules of docs/protocol.md: its memory as it is and as it would be after a loss of power,
// sessions of clients with their grants, hello, commit message, native flush, verifier. In one place and
// without time of its own.
class ModelBrick final : public Brick, public Responder, public rdma::Flusher {
 public:
  static constexpr uint64_t kBlockBytes = uint64_t{64} << 10;

  ModelBrick(Network& network, size_t number, size_t blocks, uint32_t flush_methods, uint64_t seed);
  ~ModelBrick() override;

  std::string address() const { return "brick:" + std::to_string(number_); }
  uint32_t flush_methods() const { return flush_methods_; }
  // --- for the MDS
  // A zeroed block; none: the pool is full.
  std::optional<uint64_t> allocate();
  void free(uint64_t block);
  std::byte* bytes(uint64_t block) { return memory_.data() + block * kBlockBytes; }
  // Durable when it returns.
  void zero(uint64_t block, uint64_t from);
  bool persist(uint64_t block, uint64_t from, uint64_t to);
  const BrickVerifier& verifier() const { return verifier_; }
  nfs4::DeviceAddress device_address(size_t client);
  nfs4::Target expose(size_t client, uint64_t block, bool writable);
  // The handle is dead when it returns.
  void withdraw(size_t client, uint64_t grant);
  void withdraw_all();
  // Nothing of what the client has sent lands any more.
  void close_session(size_t client);
  uint32_t connection(size_t client) { return session(client).connection; }

  // --- Brick
  void stop(bool lose) override;
  void start() override;
  void fail_next_flush() override { fail_next_flush_ = true; }
  void forget_orders() override { fail_next_flush_ = false; }

  // --- Responder
  std::expected<void, brick::RejectReason> connected(const brick::ConnectPrivateData& data,
                                                     const std::shared_ptr<Link>& link) override;
  bool up() const override { return up_; }
  bool native_flush() const override { return (flush_methods_ & nfs4::kFlushNative) != 0; }
  void message(Link& link, ByteSpan bytes) override;
  bool may_flush(Link& link) override { return link.verifier == verifier_; }

  // --- Flusher
  Result<> flush(MutableByteSpan memory) override;

 private:
  struct Grant {
    uint64_t block = 0;
    bool writable = false;
    std::unique_ptr<rdma::Region> region;
  };
  struct Session {
    xdr::FixedOpaque<16> ticket{};
    std::shared_ptr<rdma::SoftwareDomain> domain;
    uint32_t connection = 0;
    std::weak_ptr<Link> link;
    std::map<uint64_t, Grant> grants;
  };

  Session& session(size_t client);
  void register_grant(Session& session, Grant& grant);
  nfs4::Target target(uint64_t id, const Grant& grant) const;
  brick::HelloReply hello(const Session& session) const;
  brick::PersistReply persist(const Session& session, const brick::PersistCall& call);
  void lose_memory();
  void new_verifier();

  Network& network_;
  const size_t number_;
  const uint32_t flush_methods_;
  Dice dice_;
  Bytes memory_, durable_;
  std::vector<uint64_t> free_;
  BrickVerifier verifier_{};
  std::map<size_t, Session> sessions_;
  uint64_t next_grant_ = 100;
  bool up_ = true;
  bool fail_next_flush_ = false;
};

}  // namespace pnfsrdma::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shared/brick/control.h"
#include "shared/nfs4/pmem_layout.h"
#include "tests/sim/brick.h"
#include "tests/sim/network.h"

namespace pnfsrdma::sim {

// A brick as the MDS itself knows it: the control protocol over blocks with logical addresses, with an epoch,
// sessions by ticket, and grants of ranges; and towards clients what ModelBrick does. Without time of its own.
class ServedBrick final : public Brick, public Responder, public rdma::Flusher {
 public:
  ServedBrick(Network& network, size_t number, size_t blocks, uint32_t flush_methods, uint64_t seed);
  ~ServedBrick() override;

  std::string address() const { return "brick:" + std::to_string(number_); }
  // Something that must never be asked of a brick.
  std::function<void(const std::string&)> on_violation;

  // --- the control protocol: what it answers, at once
  brick::IdentifyResult identify() const;
  brick::ClaimResult claim(const brick::ClaimArguments& arguments);
  brick::RunsResult alloc(const brick::AllocArguments& arguments);
  brick::StatusResult free(const brick::BlocksArguments& arguments);
  brick::ListResult list(const brick::ListArguments& arguments) const;
  brick::StatusResult open_session(const brick::OpenSessionArguments& arguments);
  brick::StatusResult close_session(const brick::CloseSessionArguments& arguments);
  brick::SessionsResult list_sessions() const;
  brick::GrantsResult list_grants(const brick::ListGrantsArguments& arguments) const;
  brick::ExposeResult expose(const brick::ExposeArguments& arguments);
  brick::StatusResult withdraw(const brick::WithdrawArguments& arguments);
  brick::PersistResult persist(const brick::RangesArguments& arguments);
  brick::StatusResult zero(const brick::RangesArguments& arguments);
  brick::StatusResult copy(const brick::CopyArguments& arguments);
  brick::StatisticsResult statistics() const;

  // --- for who looks from outside, whether it is up or not
  // What is there, and what would be after a loss of power. False: not all of it is allocated.
  bool look(uint64_t logical, MutableByteSpan now, MutableByteSpan durable) const;
  // A client can write some of it.
  bool writable(uint64_t logical, uint64_t length) const;
  uint64_t used_blocks() const { return allocated_.size(); }
  // What a loss of power takes or leaves as one.
  static constexpr size_t kLineBytes = 64;

  // --- by the MDS's own memory handles. False: the claim of then is not in force.
  uint64_t epoch() const { return epoch_; }
  uint64_t process() const { return incarnation_; }
  // The client, by the MDS's number for it.
  bool lets_in(uint64_t client) const { return sessions_.contains(client); }
  bool read(uint64_t epoch, uint64_t logical, MutableByteSpan sink);
  bool write(uint64_t epoch, uint64_t logical, ByteSpan source);

  // --- Brick, Responder
  bool up() const override { return up_; }
  void stop(bool lose) override;
  void start() override { up_ = true; }
  void fail_next_flush() override { fail_next_flush_ = true; }
  void forget_orders() override { fail_next_flush_ = false; }
  std::expected<void, brick::RejectReason> connected(const brick::ConnectPrivateData& data,
                                                     const std::shared_ptr<Link>& link) override;
  bool native_flush() const override { return (flush_methods_ & nfs4::kFlushNative) != 0; }
  void message(Link& link, ByteSpan bytes) override;
  bool may_flush(Link& link) override { return link.verifier == verifier_; }

  // --- Flusher
  Result<> flush(MutableByteSpan memory) override;

 private:
  struct Exposure {
    uint64_t logical = 0, length = 0;
    bool writable = false;
    std::unique_ptr<rdma::Region> region;
  };
  struct Session {
    xdr::FixedOpaque<brick::kTicketSize> ticket{};
    std::shared_ptr<rdma::SoftwareDomain> domain;
    uint32_t connection = 0;
    std::weak_ptr<Link> link;
    std::map<uint64_t, Exposure> exposures;
  };
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using Memory = std::unique_ptr<std::byte[], FreeMemory>;

  brick::Status check(uint64_t epoch) const;
  // The place of a range within one block; none: it is not allocated.
  std::optional<size_t> place(uint64_t logical) const;
  // The pieces of a range that lie in one block each; none: some of it is not allocated.
  std::optional<std::vector<MutableByteSpan>> pieces(uint64_t logical, uint64_t length) const;
  bool exposed(uint64_t logical) const;
  void end_session(std::map<uint64_t, Session>::iterator session);
  void register_exposure(Session& session, Exposure& exposure);
  Session* session_of(const Link& link);
  brick::HelloReply hello(const Session& session) const;
  brick::PersistReply persist(const Session& session, const brick::PersistCall& call);
  void lose_memory();
  void new_verifier();

  Network& network_;
  const size_t number_, blocks_;
  const uint32_t flush_methods_;
  Dice dice_;
  Memory memory_, durable_;
  std::vector<size_t> free_;
  std::map<uint64_t, size_t> allocated_;  // by logical address
  uint64_t epoch_ = 0;
  std::string owner_;
  uint64_t incarnation_ = 1;
  bool claimed_ = false;  // since it started
  xdr::FixedOpaque<8> verifier_{};
  std::map<uint64_t, Session> sessions_;
  uint64_t next_grant_ = 100;
  bool up_ = true;
  bool fail_next_flush_ = false;
};

}  // namespace pnfsrdma::sim

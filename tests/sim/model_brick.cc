// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/model_brick.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shared/brick/session_codec.h"

namespace pnfsrdma::sim {

namespace {

// What the power keeps or loses as one.
constexpr size_t kLineBytes = 64;

}  // namespace

ModelBrick::ModelBrick(Network& network, size_t number, size_t blocks, uint32_t flush_methods, uint64_t seed)
    : network_(network),
      number_(number),
      flush_methods_(flush_methods),
      dice_(seed),
      memory_(blocks * kBlockBytes),
      durable_(memory_.size()) {
  for (uint64_t block = blocks; block > 0; --block) free_.push_back(block - 1);
  new_verifier();
  network_.add(address(), number, *this);
}

ModelBrick::~ModelBrick() {
  sessions_.clear();
}

std::optional<uint64_t> ModelBrick::allocate() {
  if (free_.empty()) return std::nullopt;
  const size_t index = dice_.below(free_.size());
  const uint64_t block = std::exchange(free_[index], free_.back());
  free_.pop_back();
  zero(block, 0);
  return block;
}

void ModelBrick::free(uint64_t block) {
  free_.push_back(block);
}

void ModelBrick::zero(uint64_t block, uint64_t from) {
  for (Bytes* image : {&memory_, &durable_})
    std::memset(image->data() + block * kBlockBytes + from, 0, kBlockBytes - from);
}

bool ModelBrick::persist(uint64_t block, uint64_t from, uint64_t to) {
  return flush({bytes(block) + from, to - from}).has_value();
}

Result<> ModelBrick::flush(MutableByteSpan memory) {
  if (std::exchange(fail_next_flush_, false)) {
    lose_memory();
    return fail(EIO, "the flush failed");
  }
  // Whole lines: what shares a line with a flushed byte is flushed.
  const auto first = static_cast<size_t>(memory.data() - memory_.data()) / kLineBytes * kLineBytes;
  const auto end = static_cast<size_t>(memory.data() - memory_.data()) + memory.size();
  const size_t last = std::min((end + kLineBytes - 1) / kLineBytes * kLineBytes, memory_.size());
  std::copy(memory_.begin() + static_cast<std::ptrdiff_t>(first),
            memory_.begin() + static_cast<std::ptrdiff_t>(last),
            durable_.begin() + static_cast<std::ptrdiff_t>(first));
  return {};
}

void ModelBrick::new_verifier() {
  const uint64_t value = dice_.next();
  std::memcpy(verifier_.data(), &value, sizeof value);
}

// Of what was not flushed some lines are there, and some are not.
void ModelBrick::lose_memory() {
  on_loss();
  const uint64_t kept = dice_.below(3) * 40;  // per cent
  for (size_t at = 0; at < memory_.size(); at += kLineBytes) {
    if (std::memcmp(&memory_[at], &durable_[at], kLineBytes) == 0) continue;
    if (dice_.percent(kept)) {
      std::memcpy(&durable_[at], &memory_[at], kLineBytes);
    } else {
      std::memcpy(&memory_[at], &durable_[at], kLineBytes);
    }
  }
  new_verifier();
}

void ModelBrick::stop(bool lose) {
  const simulated::Scheduler::Undisturbed step;
  up_ = false;
  for (auto& [client, session] : sessions_) {
    if (const auto link = session.link.lock()) link->close_brick();
  }
  sessions_.clear();
  if (lose) lose_memory();
}

void ModelBrick::start() {
  up_ = true;
}

ModelBrick::Session& ModelBrick::session(size_t client) {
  Session& session = sessions_[client];
  if (!session.domain) {
    session.domain = std::make_shared<rdma::SoftwareDomain>();
    for (auto& byte : session.ticket) byte = static_cast<std::byte>(dice_.next());
  }
  return session;
}

nfs4::DeviceAddress ModelBrick::device_address(size_t client) {
  nfs4::DeviceAddress device;
  device.paths.push_back({"memory", address()});
  device.ticket = session(client).ticket;
  device.flush_methods = flush_methods_;
  device.durability = Durability::kPower;
  device.block_size = kBlockBytes;
  return device;
}

void ModelBrick::register_grant(Session& session, Grant& grant) {
  auto access = rdma::Access::kRemoteRead;
  if (grant.writable) access = access | rdma::Access::kRemoteWrite;
  if (native_flush()) access = access | rdma::Access::kRemoteFlush;
  grant.region.reset();
  auto region = rdma::make_software_region(session.domain, {bytes(grant.block), kBlockBytes}, access, this,
                                           network_.random());
  CHECK(region);
  grant.region = std::move(*region);
}

nfs4::Target ModelBrick::target(uint64_t id, const Grant& grant) const {
  return {id, grant.region->remote().key, grant.region->remote().address};
}

nfs4::Target ModelBrick::expose(size_t client, uint64_t block, bool writable) {
  const simulated::Scheduler::Undisturbed step;
  Session& granting = session(client);
  for (auto& [id, grant] : granting.grants) {
    if (grant.block == block && grant.writable == writable) return target(id, grant);
  }
  const uint64_t id = next_grant_++;
  Grant& grant = granting.grants[id];
  grant.block = block;
  grant.writable = writable;
  register_grant(granting, grant);
  return target(id, grant);
}

void ModelBrick::withdraw(size_t client, uint64_t grant) {
  const simulated::Scheduler::Undisturbed step;
  const auto found = sessions_.find(client);
  if (found != sessions_.end()) found->second.grants.erase(grant);
}

void ModelBrick::withdraw_all() {
  const simulated::Scheduler::Undisturbed step;
  for (auto& [client, session] : sessions_) session.grants.clear();
}

void ModelBrick::close_session(size_t client) {
  const simulated::Scheduler::Undisturbed step;
  const auto found = sessions_.find(client);
  if (found == sessions_.end()) return;
  if (const auto link = found->second.link.lock()) link->close_brick();
  sessions_.erase(found);
}

std::expected<void, brick::RejectReason> ModelBrick::connected(const brick::ConnectPrivateData& data,
                                                               const std::shared_ptr<Link>& link) {
  const simulated::Scheduler::Undisturbed step;
  const auto found = sessions_.find(link->client);
  if (found == sessions_.end() || found->second.ticket != data.ticket)
    return std::unexpected(brick::RejectReason::kTicket);
  Session& session = found->second;
  // It replaces the one before, of which nothing lands from now on.
  if (const auto before = session.link.lock()) before->close_brick();
  session.link = link;
  ++session.connection;
  for (auto& [id, grant] : session.grants) register_grant(session, grant);
  link->brick_domain = session.domain;
  link->verifier = verifier_;
  return {};
}

brick::HelloReply ModelBrick::hello(const Session& session) const {
  brick::HelloReply reply{.verifier = verifier_, .connection = session.connection};
  for (const auto& [id, grant] : session.grants) {
    const nfs4::Target known = target(id, grant);
    reply.grants.push_back({known.grant, known.handle, known.address});
  }
  return reply;
}

brick::PersistReply ModelBrick::persist(const Session& session, const brick::PersistCall& call) {
  brick::PersistReply reply{.id = call.id};
  for (const brick::PersistTarget& range : call.ranges) {
    const auto grant = session.grants.find(range.grant);
    if (grant == session.grants.end()) {
      reply.status = brick::PersistStatus::kUnknownGrant;
    } else if (range.offset > kBlockBytes || range.length > kBlockBytes - range.offset) {
      reply.status = brick::PersistStatus::kBounds;
    } else if (!persist(grant->second.block, range.offset, range.offset + range.length)) {
      reply.status = brick::PersistStatus::kIo;
    }
    if (reply.status != brick::PersistStatus::kOk) break;
  }
  reply.verifier = verifier_;
  return reply;
}

void ModelBrick::message(Link& link, ByteSpan bytes) {
  const auto call = brick::decode_session_message(bytes);
  CHECK(call);
  const Session& session = sessions_.at(link.client);
  brick::SessionMessage reply;
  if (std::holds_alternative<brick::HelloCall>(*call)) {
    reply = hello(session);
  } else {
    reply = persist(session, std::get<brick::PersistCall>(*call));
  }
  Bytes message(brick::kSessionMessageMax);
  message.resize(brick::encode_session_message(reply, message));
  link.answer(std::move(message), dice_.microseconds(5, 60));
}

}  // namespace pnfsrdma::sim

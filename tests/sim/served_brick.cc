// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/served_brick.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "shared/base/check.h"
#include "shared/brick/session_codec.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::sim {

namespace {

constexpr uint64_t kBlock = brick::kBlockSize;

}  // namespace

// calloc: what nobody touches costs nothing.
ServedBrick::ServedBrick(Network& network, size_t number, size_t blocks, uint32_t flush_methods,
                         uint64_t seed)
    : network_(network),
      number_(number),
      blocks_(blocks),
      flush_methods_(flush_methods),
      dice_(seed),
      memory_(static_cast<std::byte*>(std::calloc(blocks, kBlock))),
      durable_(static_cast<std::byte*>(std::calloc(blocks, kBlock))) {
  CHECK(memory_ && durable_);
  for (size_t block = blocks; block > 0; --block) free_.push_back(block - 1);
  new_verifier();
  network_.add(address(), number, *this);
}

ServedBrick::~ServedBrick() {
  sessions_.clear();
}

// --- the control protocol ---

brick::Status ServedBrick::check(uint64_t epoch) const {
  if (epoch < epoch_) return brick::Status::kStaleEpoch;
  return claimed_ ? brick::Status::kOk : brick::Status::kLapsed;
}

brick::IdentifyResult ServedBrick::identify() const {
  brick::IdentifyResult result;
  result.uuid[0] = static_cast<std::byte>(number_ + 1);
  result.claimed_epoch = epoch_;
  result.owner = owner_;
  result.block_count = blocks_;
  result.used_blocks = allocated_.size();
  return result;
}

brick::ClaimResult ServedBrick::claim(const brick::ClaimArguments& arguments) {
  brick::ClaimResult result;
  if (arguments.epoch > epoch_) {
    epoch_ = arguments.epoch;
    owner_ = std::string(arguments.owner);
    claimed_ = true;
  } else {
    result.status = brick::Status::kStaleEpoch;
  }
  result.claimed_epoch = epoch_;
  result.uuid = identify().uuid;
  result.incarnation = incarnation_;
  result.verifier = verifier_;
  result.block_count = blocks_;
  result.free_blocks = free_.size();
  result.flush_methods = flush_methods_;
  result.durability = static_cast<uint32_t>(Durability::kPower);
  result.kind = "file";
  result.grants_max = 4096;
  result.paths.push_back({"memory", address()});
  return result;
}

brick::RunsResult ServedBrick::alloc(const brick::AllocArguments& arguments) {
  brick::RunsResult result;
  result.status = check(arguments.epoch);
  if (result.status != brick::Status::kOk) return result;
  if (free_.size() < arguments.count) {
    result.status = brick::Status::kNoSpace;
    return result;
  }
  for (uint64_t i = 0; i < arguments.count; ++i) {
    if (allocated_.contains(arguments.logical + i * kBlock)) {
      result.status = brick::Status::kExists;
      return result;
    }
  }
  for (uint64_t i = 0; i < arguments.count; ++i) {
    const size_t index = dice_.below(free_.size());
    const size_t block = std::exchange(free_[index], free_.back());
    free_.pop_back();
    std::memset(&memory_[block * kBlock], 0, kBlock);
    std::memset(&durable_[block * kBlock], 0, kBlock);
    allocated_[arguments.logical + i * kBlock] = block;
    result.runs.push_back({arguments.logical + i * kBlock, 1});
  }
  return result;
}

brick::StatusResult ServedBrick::free(const brick::BlocksArguments& arguments) {
  brick::StatusResult result{check(arguments.epoch)};
  if (result.status != brick::Status::kOk) return result;
  for (const brick::Run& run : arguments.runs) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const uint64_t logical = run.logical + i * kBlock;
      if (exposed(logical)) {
        on_violation("a block is freed while a client reaches it");
        return {brick::Status::kBusy};
      }
      const auto found = allocated_.find(logical);
      if (found == allocated_.end()) continue;
      free_.push_back(found->second);
      allocated_.erase(found);
    }
  }
  return result;
}

brick::ListResult ServedBrick::list(const brick::ListArguments& arguments) const {
  brick::ListResult result;
  for (auto at = allocated_.lower_bound(arguments.from); at != allocated_.end(); ++at)
    result.runs.push_back({{at->first, 1}, false});
  result.end = true;
  return result;
}

brick::StatusResult ServedBrick::open_session(const brick::OpenSessionArguments& arguments) {
  const brick::StatusResult result{check(arguments.epoch)};
  if (result.status != brick::Status::kOk) return result;
  Session& session = sessions_[arguments.client];
  session.ticket = arguments.ticket;
  if (!session.domain) session.domain = std::make_shared<rdma::SoftwareDomain>();
  return result;
}

void ServedBrick::end_session(std::map<uint64_t, Session>::iterator session) {
  if (const auto link = session->second.link.lock()) link->close_brick();
  sessions_.erase(session);
}

brick::StatusResult ServedBrick::close_session(const brick::CloseSessionArguments& arguments) {
  const simulated::Scheduler::Undisturbed step;
  const brick::StatusResult result{check(arguments.epoch)};
  if (result.status != brick::Status::kOk) return result;
  const auto found = sessions_.find(arguments.client);
  if (found == sessions_.end()) return {brick::Status::kNotFound};
  end_session(found);
  return result;
}

brick::SessionsResult ServedBrick::list_sessions() const {
  brick::SessionsResult result;
  for (const auto& [client, session] : sessions_) {
    brick::SessionEntry entry;
    entry.client = client;
    entry.connection = session.connection;
    entry.grants = static_cast<uint32_t>(session.exposures.size());
    result.sessions.push_back(entry);
  }
  return result;
}

brick::GrantsResult ServedBrick::list_grants(const brick::ListGrantsArguments& arguments) const {
  brick::GrantsResult result;
  const auto found = sessions_.find(arguments.client);
  if (found == sessions_.end()) {
    result.status = brick::Status::kNotFound;
    return result;
  }
  // Small pages, so that there are several.
  const auto& exposures = found->second.exposures;
  auto next = exposures.upper_bound(arguments.after);
  for (; next != exposures.end() && result.grants.size() < 2; ++next) {
    const Exposure& exposure = next->second;
    const auto remote = exposure.region->remote();
    result.grants.push_back(
        {next->first, exposure.logical, exposure.length, exposure.writable, remote.key, remote.address});
  }
  result.more = next != exposures.end();
  return result;
}

brick::ExposeResult ServedBrick::expose(const brick::ExposeArguments& arguments) {
  const simulated::Scheduler::Undisturbed step;
  brick::ExposeResult result;
  result.status = check(arguments.epoch);
  if (result.status != brick::Status::kOk) return result;
  const auto found = sessions_.find(arguments.client);
  if (found == sessions_.end()) {
    result.status = brick::Status::kNotFound;
    return result;
  }
  if (!pieces(arguments.logical, arguments.length)) {
    on_violation("memory is exposed that is not allocated");
    result.status = brick::Status::kNotFound;
    return result;
  }
  Session& session = found->second;
  result.connection = session.connection;
  const uint64_t end = arguments.logical + arguments.length;
  for (uint64_t at = arguments.logical; at < end;) {
    const uint64_t next = std::min(end, at - at % kBlock + kBlock);
    const uint64_t id = next_grant_++;
    Exposure& made = session.exposures[id];
    made.logical = at;
    made.length = next - at;
    made.writable = arguments.writable;
    register_exposure(session, made);
    const auto remote = made.region->remote();
    result.grants.push_back({id, at, next - at, arguments.writable, remote.key, remote.address});
    at = next;
  }
  return result;
}

brick::StatusResult ServedBrick::withdraw(const brick::WithdrawArguments& arguments) {
  const simulated::Scheduler::Undisturbed step;
  const brick::StatusResult result{check(arguments.epoch)};
  if (result.status != brick::Status::kOk) return result;
  const auto found = sessions_.find(arguments.client);
  if (found == sessions_.end()) return result;
  for (const uint64_t grant : arguments.grants) found->second.exposures.erase(grant);
  return result;
}

brick::PersistResult ServedBrick::persist(const brick::RangesArguments& arguments) {
  brick::PersistResult result;
  result.status = check(arguments.epoch);
  if (result.status != brick::Status::kOk) return result;
  for (const brick::Range& range : arguments.ranges) {
    const auto parts = pieces(range.logical, range.length);
    if (!parts) {
      result.status = brick::Status::kNotFound;
      break;
    }
    for (const MutableByteSpan part : *parts) {
      if (!flush(part)) result.status = brick::Status::kIo;
    }
  }
  result.verifier = verifier_;
  return result;
}

brick::StatusResult ServedBrick::zero(const brick::RangesArguments& arguments) {
  const brick::StatusResult result{check(arguments.epoch)};
  if (result.status != brick::Status::kOk) return result;
  for (const brick::Range& range : arguments.ranges) {
    const auto parts = pieces(range.logical, range.length);
    if (!parts) return {brick::Status::kNotFound};
    for (const MutableByteSpan part : *parts) {
      std::fill(part.begin(), part.end(), std::byte{0});
      std::fill_n(&durable_[static_cast<size_t>(part.data() - memory_.get())], part.size(), std::byte{0});
    }
  }
  return result;
}

brick::StatusResult ServedBrick::copy(const brick::CopyArguments& arguments) {
  brick::StatusResult result{check(arguments.epoch)};
  if (result.status != brick::Status::kOk) return result;
  std::vector<std::byte> bytes(arguments.length);
  const bool copied =
      read(arguments.epoch, arguments.source, bytes) && write(arguments.epoch, arguments.target, bytes);
  if (!copied) return {brick::Status::kNotFound};
  const auto parts = pieces(arguments.target, arguments.length);
  for (const MutableByteSpan part : *parts) {
    if (!flush(part)) result.status = brick::Status::kIo;
  }
  return result;
}

brick::StatisticsResult ServedBrick::statistics() const {
  brick::StatisticsResult result;
  result.block_count = blocks_;
  result.free_blocks = result.clean_blocks = free_.size();
  result.sessions = static_cast<uint32_t>(sessions_.size());
  return result;
}

bool ServedBrick::read(uint64_t epoch, uint64_t logical, MutableByteSpan sink) {
  if (!up_ || check(epoch) != brick::Status::kOk) return false;
  const auto parts = pieces(logical, sink.size());
  if (!parts) return false;
  auto* to = sink.data();
  for (const MutableByteSpan part : *parts) to = std::copy(part.begin(), part.end(), to);
  return true;
}

bool ServedBrick::write(uint64_t epoch, uint64_t logical, ByteSpan source) {
  if (!up_ || check(epoch) != brick::Status::kOk) return false;
  const auto parts = pieces(logical, source.size());
  if (!parts) return false;
  const auto* from = source.data();
  for (const MutableByteSpan part : *parts) {
    std::copy_n(from, part.size(), part.begin());
    from += part.size();
  }
  return true;
}

// --- its memory ---

std::optional<size_t> ServedBrick::place(uint64_t logical) const {
  const auto found = allocated_.find(logical - logical % kBlock);
  if (found == allocated_.end()) return std::nullopt;
  return found->second * kBlock + logical % kBlock;
}

std::optional<std::vector<MutableByteSpan>> ServedBrick::pieces(uint64_t logical, uint64_t length) const {
  std::vector<MutableByteSpan> parts;
  const uint64_t end = logical + length;
  for (uint64_t at = logical; at < end;) {
    const uint64_t next = std::min(end, at - at % kBlock + kBlock);
    const auto begin = place(at);
    if (!begin) return std::nullopt;
    parts.emplace_back(memory_.get() + *begin, next - at);
    at = next;
  }
  return parts;
}

bool ServedBrick::exposed(uint64_t logical) const {
  for (const auto& [client, session] : sessions_) {
    for (const auto& [id, exposure] : session.exposures) {
      if (exposure.logical < logical + kBlock && logical < exposure.logical + exposure.length) return true;
    }
  }
  return false;
}

bool ServedBrick::look(uint64_t logical, MutableByteSpan now, MutableByteSpan durable) const {
  const auto parts = pieces(logical, now.size());
  if (!parts) return false;
  size_t at = 0;
  for (const MutableByteSpan part : *parts) {
    std::copy(part.begin(), part.end(), now.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy_n(&durable_[static_cast<size_t>(part.data() - memory_.get())], part.size(), &durable[at]);
    at += part.size();
  }
  return true;
}

bool ServedBrick::writable(uint64_t logical, uint64_t length) const {
  return std::ranges::any_of(sessions_, [&](const auto& session) {
    return std::ranges::any_of(session.second.exposures, [&](const auto& entry) {
      const Exposure& exposure = entry.second;
      return exposure.writable && exposure.logical < logical + length &&
             logical < exposure.logical + exposure.length;
    });
  });
}

Result<> ServedBrick::flush(MutableByteSpan memory) {
  if (std::exchange(fail_next_flush_, false)) {
    lose_memory();
    return fail(EIO, "the flush failed");
  }
  // Whole lines: what shares a line with a flushed byte is flushed.
  const auto first = static_cast<size_t>(memory.data() - memory_.get()) / kLineBytes * kLineBytes;
  const auto end = static_cast<size_t>(memory.data() - memory_.get()) + memory.size();
  const size_t last = (end + kLineBytes - 1) / kLineBytes * kLineBytes;
  std::copy(&memory_[first], &memory_[last - 1] + 1, &durable_[first]);
  return {};
}

void ServedBrick::new_verifier() {
  const uint64_t value = dice_.next();
  std::memcpy(verifier_.data(), &value, sizeof value);
}

// Of what was not flushed some lines are there, and some are not.
void ServedBrick::lose_memory() {
  on_loss();
  const uint64_t kept = dice_.below(3) * 40;  // per cent
  for (const auto& [logical, block] : allocated_) {
    for (size_t at = block * kBlock; at < (block + 1) * kBlock; at += kLineBytes) {
      if (std::memcmp(&memory_[at], &durable_[at], kLineBytes) == 0) continue;
      if (dice_.percent(kept)) {
        std::memcpy(&durable_[at], &memory_[at], kLineBytes);
      } else {
        std::memcpy(&memory_[at], &durable_[at], kLineBytes);
      }
    }
  }
  new_verifier();
}

void ServedBrick::stop(bool lose) {
  const simulated::Scheduler::Undisturbed step;
  up_ = false;
  claimed_ = false;
  while (!sessions_.empty()) end_session(sessions_.begin());
  ++incarnation_;
  if (lose) lose_memory();
}

// --- clients ---

void ServedBrick::register_exposure(Session& session, Exposure& exposure) {
  auto access = rdma::Access::kRemoteRead;
  if (exposure.writable) access = access | rdma::Access::kRemoteWrite;
  if (native_flush()) access = access | rdma::Access::kRemoteFlush;
  exposure.region.reset();
  auto region =
      rdma::make_software_region(session.domain, {memory_.get() + *place(exposure.logical), exposure.length},
                                 access, this, network_.random());
  CHECK(region);
  exposure.region = std::move(*region);
}

std::expected<void, brick::RejectReason> ServedBrick::connected(const brick::ConnectPrivateData& data,
                                                                const std::shared_ptr<Link>& link) {
  const simulated::Scheduler::Undisturbed step;
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& entry) { return entry.second.ticket == data.ticket; });
  if (found == sessions_.end()) return std::unexpected(brick::RejectReason::kTicket);
  Session& session = found->second;
  // It replaces the one before, of which nothing lands from now on.
  if (const auto before = session.link.lock()) before->close_brick();
  session.link = link;
  ++session.connection;
  for (auto& [id, exposure] : session.exposures) register_exposure(session, exposure);
  link->brick_domain = session.domain;
  link->verifier = verifier_;
  return {};
}

ServedBrick::Session* ServedBrick::session_of(const Link& link) {
  for (auto& [client, session] : sessions_) {
    if (session.link.lock().get() == &link) return &session;
  }
  return nullptr;
}

brick::HelloReply ServedBrick::hello(const Session& session) const {
  brick::HelloReply reply{.verifier = verifier_, .connection = session.connection};
  for (const auto& [id, exposure] : session.exposures) {
    const auto remote = exposure.region->remote();
    reply.grants.push_back({id, remote.key, remote.address});
  }
  return reply;
}

brick::PersistReply ServedBrick::persist(const Session& session, const brick::PersistCall& call) {
  brick::PersistReply reply{.id = call.id};
  for (const brick::PersistTarget& range : call.ranges) {
    const auto found = session.exposures.find(range.grant);
    if (found == session.exposures.end()) {
      reply.status = brick::PersistStatus::kUnknownGrant;
      break;
    }
    const Exposure& exposure = found->second;
    if (range.offset > exposure.length || range.length > exposure.length - range.offset) {
      reply.status = brick::PersistStatus::kBounds;
    } else if (!flush({memory_.get() + *place(exposure.logical) + range.offset, range.length})) {
      reply.status = brick::PersistStatus::kIo;
    }
    if (reply.status != brick::PersistStatus::kOk) break;
  }
  reply.verifier = verifier_;
  return reply;
}

void ServedBrick::message(Link& link, ByteSpan bytes) {
  const auto call = brick::decode_session_message(bytes);
  CHECK(call);
  const Session* const session = session_of(link);
  CHECK(session != nullptr);
  brick::SessionMessage reply;
  if (std::holds_alternative<brick::HelloCall>(*call)) {
    reply = hello(*session);
  } else {
    reply = persist(*session, std::get<brick::PersistCall>(*call));
  }
  Bytes message(brick::kSessionMessageMax);
  message.resize(brick::encode_session_message(reply, message));
  link.answer(std::move(message), dice_.microseconds(5, 60));
}

}  // namespace pnfsrdma::sim

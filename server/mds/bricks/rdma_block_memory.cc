// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/rdma_block_memory.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/brick/session_codec.h"
#include "shared/initiator/brick/hello.h"

namespace pnfsrdma::mds {

namespace {
constexpr Milliseconds kConnectPatience{5000};
// Blocks exposed to us at a time (each is one grant and one registration): 2 GiB of files touched through the
// server.
constexpr size_t kExposuresMax = 1024;
// Work requests in flight; more wait. Below every queue pair's send_depth.
constexpr size_t kInFlightMax = 48;
constexpr uint32_t kAttemptsMax = 3;

uint64_t block_of(uint64_t logical) {
  return logical - logical % brick::kBlockSize;
}
}  // namespace

struct RdmaBlockMemory::Link {
  size_t transport = 0;
  std::unique_ptr<initiator::MessageArea> area;
  std::unique_ptr<rdma::QueuePair> queue_pair;  // goes before the memory it receives into
  uint32_t connection = 0;
};

RdmaBlockMemory::RdmaBlockMemory(EventLoop& loop, BrickDevice& brick,
                                 std::vector<initiator::TransportDomain> transports)
    : loop_(loop), brick_(brick), transports_(std::move(transports)) {
  for (auto& transport : transports_) {
    if (!transport.domain) transport.domain = transport.transport->make_protection_domain();
  }
}

RdmaBlockMemory::~RdmaBlockMemory() {
  lifetime_.end();
  if (connector_.joinable()) connector_.join();
  if (link_) loop_.unwatch(link_->queue_pair->fd());
  link_.reset();
}

void RdmaBlockMemory::read(uint64_t logical, MutableByteSpan sink, std::shared_ptr<void> keep, Done done) {
  start(false, logical, sink, std::move(keep), std::move(done));
}

void RdmaBlockMemory::write(uint64_t logical, ByteSpan source, std::shared_ptr<const void> keep, Done done) {
  // A source of RDMA WRITE is only read; regions have one kind of span.
  const MutableByteSpan memory(const_cast<std::byte*>(source.data()), source.size());
  start(true, logical, memory, std::move(keep), std::move(done));
}

void RdmaBlockMemory::start(bool writes, uint64_t logical, MutableByteSpan memory,
                            std::shared_ptr<const void> keep, Done done) {
  if (memory.empty()) return done(true);
  auto operation = std::make_shared<Operation>();
  operation->writes = writes;
  operation->keep = std::move(keep);
  operation->memory = memory;
  operation->done = std::move(done);
  for (size_t at = 0; at < memory.size();) {
    const uint64_t block = block_of(logical + at);
    const uint64_t offset = logical + at - block;
    const size_t length = std::min<uint64_t>(memory.size() - at, brick::kBlockSize - offset);
    ready_.push_back({operation, at, static_cast<uint32_t>(length), block, static_cast<uint32_t>(offset)});
    ++operation->pieces_left;
    at += length;
  }
  pump();
}

void RdmaBlockMemory::finish(const Piece& piece, bool moved) {
  Operation& operation = *piece.operation;
  operation.good = operation.good && moved;
  if (--operation.pieces_left > 0) return;
  operation.region.reset();
  const Done done = std::move(operation.done);
  done(operation.good);
}

void RdmaBlockMemory::again(Piece piece) {
  if (++piece.attempts >= kAttemptsMax) return finish(piece, false);
  ready_.push_back(std::move(piece));
}

// Posts what can be posted. Callbacks of finished pieces may start new ones: they queue behind.
void RdmaBlockMemory::pump() {
  if (ready_.empty() || pumping_) return;
  if (!brick_.ready()) return fail_all();
  if (!link_) return connect();
  pumping_ = true;
  bool posted = false;
  while (link_ && !ready_.empty() && in_flight_.size() < kInFlightMax) {
    Piece piece = std::move(ready_.front());
    ready_.pop_front();
    const auto exposure = exposures_.find(piece.block);
    if (exposure == exposures_.end() || !exposure->second.ready) {
      const uint64_t block = piece.block;
      const bool is_new = exposure == exposures_.end();
      Exposure& entry = exposures_[block];
      entry.waiting.push_back(std::move(piece));
      if (is_new) expose(block);
      continue;
    }
    recent_.splice(recent_.begin(), recent_, exposure->second.recent);
    if (!post(piece, exposure->second)) {
      ready_.push_front(std::move(piece));
      break;
    }
    posted = true;
  }
  pumping_ = false;
  if (posted) submit_later();
}

// A submission is a system call and wakes the brick: one for all that a turn posts.
void RdmaBlockMemory::submit_later() {
  if (std::exchange(submitting_, true)) return;
  loop_.at_turn_end(lifetime_.guard([this] {
    submitting_ = false;
    if (!link_) return;
    link_->queue_pair->submit();
    on_readable();
  }));
}

bool RdmaBlockMemory::post(Piece& piece, Exposure& exposure) {
  Operation& operation = *piece.operation;
  const auto& [transport, domain] = transports_[link_->transport];
  if (!operation.region || operation.domain_link != link_number_) {
    auto region = transport->register_region(domain, operation.memory, rdma::Access::kLocalWrite);
    if (!region) {
      log_error("layouts", "registration-failed error=\"{}\"", region.error().to_string());
      again(std::move(piece));
      return true;
    }
    operation.region = *std::move(region);
    operation.domain_link = link_number_;
  }
  const rdma::LocalSlice local = operation.region->slice(piece.at, piece.length);
  const rdma::RemoteSlice remote = exposure.memory.slice(piece.offset, piece.length);
  const uint64_t work = next_work_ += 2;  // even: odd ones are receives
  const auto posted = operation.writes ? link_->queue_pair->post_write(work, {&local, 1}, remote)
                                       : link_->queue_pair->post_read(work, local, remote);
  if (!posted && posted.error().number() == ENOBUFS && !in_flight_.empty()) return false;
  if (!posted) {
    // The connection has ended: on_readable() will see it.
    again(std::move(piece));
    loop_.post(lifetime_.guard([this] { on_readable(); }));
    return true;
  }
  ++exposure.in_flight;
  in_flight_.emplace(work, std::move(piece));
  return true;
}

void RdmaBlockMemory::on_readable() {
  std::array<rdma::Completion, 64> completions;
  while (link_) {
    const bool alive = link_->queue_pair->connected();
    const size_t count = link_->queue_pair->poll(completions);
    if (count == 0) {
      if (!alive) disconnect();
      break;
    }
    for (const rdma::Completion& completion : std::span(completions).first(count)) {
      const auto found = in_flight_.find(completion.work_id);
      if (found == in_flight_.end()) continue;  // of a receive: the brick has nothing to say after its hello
      Piece piece = std::move(found->second);
      in_flight_.erase(found);
      if (const auto exposure = exposures_.find(piece.block); exposure != exposures_.end())
        --exposure->second.in_flight;
      if (completion.outcome == rdma::Outcome::kSuccess) {
        finish(piece, true);
      } else {
        again(std::move(piece));
      }
      if (!link_) return;  // a callback has ended it
    }
  }
  pump();
}

// --- the connection ---

void RdmaBlockMemory::connect() {
  if (connecting_) return;
  connecting_ = true;
  brick_.open_session(kOwnBrickClient, lifetime_.guard([this](BrickDevice::Answer<Ticket> ticket) {
    if (ticket) return connect_with(*ticket);
    connecting_ = false;
    fail_all();
  }));
}

void RdmaBlockMemory::connect_with(const Ticket& ticket) {
  std::vector<nfs4::DevicePath> paths;
  for (const brick::Path& path : brick_.identity().paths) paths.push_back({path.netid, path.address});
  const std::vector<initiator::UsablePath> usable = initiator::usable_paths(paths, transports_);
  rdma::ConnectOptions options;
  options.private_data = brick::encode_connect({brick::kSessionVersion, ticket});
  options.deadline = loop_.now() + kConnectPatience;
  if (connector_.joinable()) connector_.join();  // it has posted its result: it is over
  // connect() waits for the brick: on a thread of its own. It touches nothing of ours but copies: it may
  // outlive us.
  connector_ = Thread(
      [arrived = lifetime_.guard([this](Result<std::unique_ptr<Link>>& link) { connected(std::move(link)); }),
       usable, options, transports = transports_, &loop = loop_] {
        auto attempt = [&](const initiator::UsablePath& path) -> Result<std::unique_ptr<Link>> {
          const initiator::TransportDomain& through = transports[path.transport];
          auto link = std::make_unique<Link>();
          link->transport = path.transport;
          TRY_ASSIGN(link->area, initiator::MessageArea::allocate(through));
          TRY_ASSIGN(rdma::Connected made, through.transport->connect(path.address, through.domain, options));
          link->queue_pair = std::move(made.queue_pair);
          TRY_ASSIGN(const initiator::Hello hello,
                     initiator::say_hello(*link->queue_pair, *link->area, options.deadline));
          link->connection = hello.connection;
          return link;
        };
        Result<std::unique_ptr<Link>> link =
            fail(EHOSTUNREACH, "the brick offers no path that our transports can use");
        for (const initiator::UsablePath& path : usable) {
          link = attempt(path);
          if (link) break;
        }
        auto result = std::make_shared<Result<std::unique_ptr<Link>>>(std::move(link));
        loop.post([arrived, result] { arrived(*result); });
      });
}

void RdmaBlockMemory::connected(Result<std::unique_ptr<Link>> link) {
  connecting_ = false;
  if (!link) {
    log_warning("layouts", "brick-data-connection-failed error=\"{}\"", link.error().to_string());
    return fail_all();
  }
  link_ = *std::move(link);
  ++link_number_;
  log_info("layouts", "brick-data-connected peer={} transport={}", link_->queue_pair->peer(),
           transports_[link_->transport].transport->name());
  loop_.watch(link_->queue_pair->fd(), EPOLLIN, [this](uint32_t) { on_readable(); });
  pump();
}

void RdmaBlockMemory::disconnect() {
  if (!link_) return;
  loop_.unwatch(link_->queue_pair->fd());
  // The queue pair first: until it is gone it may touch the memory of what was in flight.
  link_.reset();
  withdraw_all();
  std::vector<Piece> lost;
  for (auto& [work, piece] : in_flight_) lost.push_back(std::move(piece));
  in_flight_.clear();
  for (Piece& piece : lost) again(std::move(piece));
  pump();
}

void RdmaBlockMemory::fail_all() {
  const std::deque<Piece> failed = std::exchange(ready_, {});
  for (const Piece& piece : failed) finish(piece, false);
}

void RdmaBlockMemory::reset() {
  if (link_) {
    loop_.unwatch(link_->queue_pair->fd());
    link_.reset();
  }
  for (auto& [block, exposure] : exposures_) {
    for (Piece& piece : exposure.waiting) ready_.push_back(std::move(piece));
  }
  exposures_.clear();
  recent_.clear();
  for (auto& [work, piece] : in_flight_) ready_.push_back(std::move(piece));
  in_flight_.clear();
  fail_all();
}

// --- exposures ---

void RdmaBlockMemory::expose(uint64_t block) {
  Exposure& exposure = exposures_.at(block);
  exposure.number = next_exposure_++;
  recent_.push_front(block);
  exposure.recent = recent_.begin();
  evict();
  brick_.expose(kOwnBrickClient, block, brick::kBlockSize, true,
                lifetime_.guard(
                    [this, block, number = exposure.number](BrickDevice::Answer<brick::ExposeResult> answer) {
                      exposed(block, number, std::move(answer));
                    }));
}

void RdmaBlockMemory::exposed(uint64_t block, uint64_t number,
                              BrickDevice::Answer<brick::ExposeResult> answer) {
  const auto found = exposures_.find(block);
  const bool wanted = found != exposures_.end() && found->second.number == number;
  const bool whole = answer && answer->grants.size() == 1 && answer->grants[0].logical == block &&
                     answer->grants[0].length == brick::kBlockSize;
  // Handles of another connection than the one we have are void.
  const bool current = whole && link_ && answer->connection == link_->connection;
  if (answer && (!wanted || !current)) {
    std::vector<uint64_t> numbers;
    for (const brick::Grant& grant : answer->grants) numbers.push_back(grant.grant);
    brick_.withdraw(kOwnBrickClient, numbers, [] {});
  }
  if (!wanted) return;
  Exposure& exposure = found->second;
  std::vector<Piece> waiting = std::move(exposure.waiting);
  exposure.waiting.clear();
  if (current) {
    const brick::Grant& grant = answer->grants[0];
    exposure.ready = true;
    exposure.grant = grant.grant;
    exposure.memory = {grant.address, grant.length, grant.handle};
    for (Piece& piece : waiting) ready_.push_back(std::move(piece));
  } else {
    recent_.erase(exposure.recent);
    exposures_.erase(found);
    for (Piece& piece : waiting) again(std::move(piece));
  }
  pump();
}

// Keeps the number of exposures down, those in use excepted.
void RdmaBlockMemory::evict() {
  const size_t grants_max = brick_.identity().grants_max;
  const size_t most =
      grants_max > 0 ? std::min<size_t>(kExposuresMax, std::max<size_t>(grants_max / 2, 1)) : kExposuresMax;
  std::vector<uint64_t> dead;
  for (auto at = recent_.end(); exposures_.size() > most && at != recent_.begin();) {
    const auto exposure = exposures_.find(*--at);
    if (!exposure->second.ready || exposure->second.in_flight > 0) continue;
    dead.push_back(exposure->second.grant);
    exposures_.erase(exposure);
    at = recent_.erase(at);
  }
  brick_.withdraw(kOwnBrickClient, dead, [] {});
}

void RdmaBlockMemory::withdraw_all() {
  std::vector<uint64_t> dead;
  for (auto& [block, exposure] : exposures_) {
    if (exposure.ready) dead.push_back(exposure.grant);
    // Those still being exposed: their answers will not be wanted.
    for (Piece& piece : exposure.waiting) ready_.push_back(std::move(piece));
  }
  exposures_.clear();
  recent_.clear();
  brick_.withdraw(kOwnBrickClient, dead, [] {});
}

void RdmaBlockMemory::forget(const std::vector<brick::Range>& ranges, std::function<void()> done) {
  std::vector<uint64_t> dead;
  for (const brick::Range& range : ranges) {
    auto at = exposures_.lower_bound(block_of(range.logical));
    while (at != exposures_.end() && at->first < range.logical + range.length) {
      if (at->second.ready) dead.push_back(at->second.grant);
      // Nobody uses blocks that are about to be freed; if somebody did, he fails.
      for (Piece& piece : at->second.waiting) ready_.push_back(std::move(piece));
      recent_.erase(at->second.recent);
      at = exposures_.erase(at);
    }
  }
  // An exposure still on its way is answered in order before this withdrawal, and withdrawn behind it: the
  // free that follows would find the block busy. It cannot be: an exposure on its way has a piece waiting,
  // and its file a turn.
  brick_.withdraw(kOwnBrickClient, dead, std::move(done));
}

}  // namespace pnfsrdma::mds

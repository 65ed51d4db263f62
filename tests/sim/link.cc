// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "shared/base/sync.h"
#include "tests/sim/network.h"

namespace pnfsrdma::sim {

namespace {

rdma::Access right_for(rdma::Opcode opcode) {
  if (opcode == rdma::Opcode::kWrite) return rdma::Access::kRemoteWrite;
  return opcode == rdma::Opcode::kFlush ? rdma::Access::kRemoteFlush : rdma::Access::kRemoteRead;
}

}  // namespace

void Link::send(size_t direction, SteadyTime::duration after, std::function<void()> deliver) {
  auto& queue = on_its_way_[direction];
  SteadyTime due = steady_now() + after;
  if (!queue.empty()) due = std::max(due, queue.back().due);
  queue.push_back({due, std::move(deliver)});
  network.schedule(due, shared_from_this(), direction);
}

void Link::pump(size_t direction) {
  auto& queue = on_its_way_[direction];
  while (!queue.empty() && queue.front().due <= steady_now() && !network.apart(client, brick)) {
    const auto deliver = std::move(queue.front().deliver);
    queue.pop_front();
    deliver();
  }
}

void Link::submit() {
  for (Request& posting : posted) {
    outstanding.push_back({posting.work_id, posting.opcode});
    auto request = std::make_shared<Request>(std::move(posting));
    send(kToBrick, network.latency(), [self = shared_from_this(), request] { self->arrive(request); });
  }
  posted.clear();
}

void Link::arrive(const std::shared_ptr<Request>& request) {
  if (!brick_open) return;
  if (request->opcode == rdma::Opcode::kSend) {
    network.responder(brick).message(*this, request->bytes);
  }
  const rdma::Outcome outcome = perform(*request);
  if (outcome != rdma::Outcome::kSuccess) brick_open = false;
  send(kToClient, network.latency(), [self = shared_from_this(), request, outcome] {
    self->complete(*request, outcome);
    if (outcome != rdma::Outcome::kSuccess) self->close_client();
  });
}

// What the far side does with it. READ takes the bytes along in the request.
rdma::Outcome Link::perform(Request& request) {
  const simulated::Scheduler::Undisturbed step;
  if (request.opcode == rdma::Opcode::kSend || request.remote.length == 0) return rdma::Outcome::kSuccess;
  const auto region = brick_domain->find(request.remote.key);
  if (!region || !region->covers(request.remote.address, request.remote.length) ||
      !rdma::allows(region->access(), right_for(request.opcode)))
    return rdma::Outcome::kRemoteAccess;
  std::byte* at = region->at(request.remote.address);
  switch (request.opcode) {
    case rdma::Opcode::kWrite:
      std::memcpy(at, request.bytes.data(), request.bytes.size());
      break;
    case rdma::Opcode::kRead:
      request.bytes.assign(at, at + request.sink.length);
      break;
    default:
      if (!network.responder(brick).may_flush(*this) ||
          !region->flusher()->flush({at, request.remote.length}))
        return rdma::Outcome::kRemoteOperation;
  }
  return rdma::Outcome::kSuccess;
}

void Link::complete(const Request& request, rdma::Outcome outcome) {
  if (!client_open) return;
  const auto found =
      std::find(outstanding.begin(), outstanding.end(), std::pair{request.work_id, request.opcode});
  if (found == outstanding.end()) return;
  outstanding.erase(found);
  if (request.opcode == rdma::Opcode::kRead && outcome == rdma::Outcome::kSuccess)
    std::memcpy(request.sink.address, request.bytes.data(), request.bytes.size());
  finish({request.work_id, request.opcode, outcome, static_cast<uint32_t>(request.remote.length)});
}

void Link::finish(rdma::Completion completion) {
  finished.push_back(completion);
  changed.ring();
}

void Link::answer(Bytes message, SteadyTime::duration after) {
  auto bytes = std::make_shared<Bytes>(std::move(message));
  send(kToClient, network.latency() + after, [self = shared_from_this(), bytes] {
    if (!self->client_open) return;
    CHECK(!self->receives.empty());
    const Receive receive = self->receives.front();
    self->receives.pop_front();
    std::memcpy(receive.buffer.address, bytes->data(), bytes->size());
    self->finish({receive.work_id, rdma::Opcode::kReceive, rdma::Outcome::kSuccess,
                  static_cast<uint32_t>(bytes->size())});
  });
}

void Link::close_client() {
  if (!client_open) return;
  client_open = false;
  for (const auto& [work_id, opcode] : outstanding) finish({work_id, opcode, rdma::Outcome::kFlushed, 0});
  for (const Request& request : posted) finish({request.work_id, request.opcode, rdma::Outcome::kFlushed, 0});
  for (const Receive& receive : receives)
    finish({receive.work_id, rdma::Opcode::kReceive, rdma::Outcome::kFlushed, 0});
  outstanding.clear();
  posted.clear();
  receives.clear();
  changed.ring();
  send(kToBrick, network.latency(), [self = shared_from_this()] { self->brick_open = false; });
}

void Link::close_brick() {
  if (!brick_open) return;
  brick_open = false;
  send(kToClient, network.latency(), [self = shared_from_this()] { self->close_client(); });
}

void Link::cut(Dice& dice) {
  if (!client_open) return;
  auto& there = on_its_way_[kToBrick];
  there.erase(there.end() - static_cast<std::ptrdiff_t>(dice.between(0, there.size())), there.end());
  auto& back = on_its_way_[kToClient];
  back.erase(back.end() - static_cast<std::ptrdiff_t>(dice.between(0, back.size())), back.end());
  if (dice.one_in(2)) {
    close_client();
  } else {
    close_brick();
  }
}

void Link::abandon(Dice& dice) {
  if (!client_open) return;
  auto& there = on_its_way_[kToBrick];
  there.erase(there.end() - static_cast<std::ptrdiff_t>(dice.between(0, there.size())), there.end());
  client_open = false;
  outstanding.clear();
  posted.clear();
  receives.clear();
  if (dice.one_in(2))
    send(kToBrick, network.latency(), [self = shared_from_this()] { self->brick_open = false; });
}

}  // namespace pnfsrdma::sim

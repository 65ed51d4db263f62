// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/session_server.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::brick {
namespace {

// One receive more than the credits and the call for events: a client that overruns them is seen, not merely stalled.
constexpr uint32_t kReceives = kSessionCredits + 2;
constexpr uint32_t kSends = kSessionCredits + 1;
constexpr size_t kCompletionsPerPoll = 32;
constexpr std::chrono::seconds kLongestWait{10};
// A connection that dies need not make its descriptor readable.
constexpr Milliseconds kLongestWaitForBoth{100};

// The last part of its answer? Only that gives the client its credit back. A call for events has none.
bool ends_answer(const SessionMessage& message) {
  if (std::holds_alternative<EventsReply>(message)) return false;
  const auto* hello = std::get_if<HelloReply>(&message);
  return hello == nullptr || !hello->more;
}

}  // namespace

SessionServer::SessionServer(rdma::QueuePair& queue_pair, const Parts& parts, uint32_t connection,
                             std::shared_ptr<ReplayRecord> record)
    : queue_pair_(queue_pair),
      exposures_(parts.exposures),
      gate_(parts.gate),
      counters_(parts.counters),
      watchers_(parts.watchers),
      inbox_(parts.inbox),
      connection_(connection),
      words_(exposures_, gate_, std::move(record)),
      verification_(exposures_, gate_),
      signals_(exposures_, gate_, watchers_, inbox_),
      buffers_(size_t{kReceives + kSends} * kSessionMessageMax) {}

Result<std::unique_ptr<SessionServer>> SessionServer::make(rdma::Transport& transport,
                                                           std::shared_ptr<rdma::ProtectionDomain> domain,
                                                           rdma::QueuePair& queue_pair, const Parts& parts,
                                                           uint32_t connection,
                                                           std::shared_ptr<ReplayRecord> record) {
  std::unique_ptr<SessionServer> server(new SessionServer(queue_pair, parts, connection, std::move(record)));
  TRY_ASSIGN(server->region_,
             transport.register_region(std::move(domain), server->buffers_, rdma::Access::kLocalWrite));
  for (uint32_t number = 0; number < kReceives; ++number) {
    TRY(queue_pair.post_receive(
        number, server->region_->slice(size_t{number} * kSessionMessageMax, kSessionMessageMax)));
  }
  for (uint32_t number = 0; number < kSends; ++number) server->free_buffers_.push_back(kReceives + number);
  return server;
}

MutableByteSpan SessionServer::buffer(uint32_t number) {
  return MutableByteSpan(buffers_).subspan(size_t{number} * kSessionMessageMax, kSessionMessageMax);
}

void SessionServer::run() {
  std::array<rdma::Completion, kCompletionsPerPoll> completions;
  for (;;) {
    const size_t count = queue_pair_.poll(completions);
    if (count == 0) {
      if (!queue_pair_.connected()) return;
      if (!events_call_ || !inbox_.any()) {
        wait();
        if (!events_call_ || !inbox_.any()) continue;
      }
    }
    // Counted before they are handled: what has come in at once was sent without waiting for answers.
    const auto is_message = [](const rdma::Completion& completion) {
      return completion.opcode == rdma::Opcode::kReceive && completion.outcome == rdma::Outcome::kSuccess;
    };
    unanswered_ +=
        static_cast<uint32_t>(std::count_if(completions.begin(), completions.begin() + count, is_message));
    Result<> result;
    if (unanswered_ > credits()) result = fail(EPROTO, "more messages than credits");
    for (size_t i = 0; i < count && result; ++i) result = handle(completions[i]);
    answer_events();
    if (result) result = send_waiting();
    if (result) result = post_receive(std::exchange(spare_receive_, std::nullopt));
    if (!result) {
      log_warning("brick", "session-broken peer={} reason=\"{}\"", queue_pair_.peer(),
                  result.error().to_string());
      queue_pair_.fail();
      return;
    }
  }
}

// Who watches something has its own descriptor to be woken by, so this connection's thread waits for both.
void SessionServer::wait() {
  if (!inbox_.is_open()) {
    queue_pair_.wait(steady_now() + kLongestWait);
    return;
  }
  std::array<pollfd, 2> both{{{queue_pair_.fd(), POLLIN, 0}, {inbox_.fd(), POLLIN, 0}}};
  (void)::poll(both.data(), both.size(), static_cast<int>(kLongestWaitForBoth.count()));
  if (both[1].revents != 0) inbox_.calm();
}

// The call for events is none of them; where there is one, it has been counted out already.
uint32_t SessionServer::credits() const {
  return kSessionCredits + (inbox_.is_open() && !events_call_ ? 1 : 0);
}

bool SessionServer::take_events_call(const EventsCall& call) {
  if (!inbox_.is_open() || events_call_) return false;
  events_call_ = call.id;
  --unanswered_;
  return true;
}

void SessionServer::answer_events() {
  if (!events_call_ || !inbox_.any()) return;
  EventsReply reply{.id = *std::exchange(events_call_, std::nullopt)};
  watchers_.take(inbox_, reply);
  waiting_.push_back(std::move(reply));
}

// A work request that did not succeed means that the connection ends; poll() says so by itself.
Result<> SessionServer::handle(const rdma::Completion& completion) {
  if (completion.outcome != rdma::Outcome::kSuccess) return {};
  const auto number = static_cast<uint32_t>(completion.work_id);
  if (completion.opcode == rdma::Opcode::kReceive) return receive(number, completion.length);
  free_buffers_.push_back(number);
  return {};
}

Result<> SessionServer::receive(uint32_t number, uint32_t length) {
  TRY(decode_session_message(ByteSpan(buffer(number)).first(length), message_));
  // One may wait until the answer is on its way: the others are as many as the credits.
  TRY(post_receive(std::exchange(spare_receive_, number)));

  if (const auto* hello = std::get_if<HelloCall>(&message_)) {
    if (hello->version != kSessionVersion) return fail(EPROTO, "hello of an unknown version");
    greeted_ = true;
    answer_hello();
    return {};
  }
  if (const auto* events = std::get_if<EventsCall>(&message_)) {
    if (greeted_ && take_events_call(*events)) return {};
    return fail(EPROTO, "a call for events out of turn");
  }
  auto answer = greeted_ ? this->answer(message_) : std::nullopt;
  if (!answer) return fail(EPROTO, "a message out of turn");
  waiting_.push_back(std::move(*answer));
  return {};
}

std::optional<SessionMessage> SessionServer::answer(const SessionMessage& call) {
  if (const auto* to_flush = std::get_if<PersistCall>(&call)) return persist(*to_flush);
  if (const auto* word = std::get_if<ChangeWordCall>(&call)) return words_.change(*word);
  if (const auto* to_verify = std::get_if<VerifyCall>(&call)) return verification_.verify(*to_verify);
  if (const auto* to_watch = std::get_if<WatchCall>(&call)) return signals_.watch(*to_watch);
  if (const auto* to_signal = std::get_if<SignalCall>(&call)) return signals_.signal(*to_signal);
  return std::nullopt;
}

Result<> SessionServer::post_receive(std::optional<uint32_t> number) {
  if (!number) return {};
  const Result<> posted = queue_pair_.post_receive(
      *number, region_->slice(size_t{*number} * kSessionMessageMax, kSessionMessageMax));
  return posted || queue_pair_.connected() ? posted : Result<>{};
}

void SessionServer::answer_hello() {
  const std::vector<HelloGrant> grants = exposures_.all();
  const Verifier verifier = gate_.verifier();
  size_t at = 0;
  do {
    HelloReply reply{.verifier = verifier, .connection = connection_};
    const size_t count = std::min<size_t>(grants.size() - at, kHelloGrantsPerMessage);
    reply.grants.assign(grants.begin() + at, grants.begin() + at + count);
    at += count;
    reply.more = at < grants.size();
    waiting_.push_back(std::move(reply));
  } while (at < grants.size());
}

// Validates everything before it flushes anything. Ranges of a grant that is withdrawn meanwhile are flushed
// all the same: that harms nobody.
PersistReply SessionServer::persist(const PersistCall& call) {
  counters_.commit_messages.fetch_add(1, std::memory_order_relaxed);
  PersistReply reply{.id = call.id};
  ranges_.clear();
  for (const PersistTarget& target : call.ranges) {
    const auto memory = exposures_.memory(target.grant);
    if (!memory) {
      reply.status = PersistStatus::kUnknownGrant;
    } else if (target.offset > memory->size() || target.length > memory->size() - target.offset) {
      reply.status = PersistStatus::kBounds;
    } else {
      ranges_.push_back(memory->subspan(target.offset, target.length));
    }
    if (reply.status != PersistStatus::kOk) break;
  }
  if (reply.status == PersistStatus::kOk && !gate_.persist(ranges_)) reply.status = PersistStatus::kIo;
  reply.verifier = gate_.verifier();
  return reply;
}

Result<> SessionServer::send_waiting() {
  bool posted_any = false;
  while (!waiting_.empty() && !free_buffers_.empty()) {
    const uint32_t number = free_buffers_.back();
    const size_t length = encode_session_message(waiting_.front(), buffer(number));
    const rdma::LocalSlice slice =
        region_->slice(size_t{number} * kSessionMessageMax, static_cast<uint32_t>(length));
    // That an answer went out is worth no wakeup, as long as there are buffers for the next ones.
    const auto posted = free_buffers_.size() > kSends / 2
                            ? queue_pair_.post_send_lazily(number, std::span(&slice, 1))
                            : queue_pair_.post_send(number, std::span(&slice, 1));
    if (!posted) return queue_pair_.connected() ? posted : Result<>{};
    free_buffers_.pop_back();
    if (ends_answer(waiting_.front())) --unanswered_;
    waiting_.pop_front();
    posted_any = true;
  }
  if (posted_any) queue_pair_.submit();
  return {};
}

}  // namespace pnfsrdma::brick

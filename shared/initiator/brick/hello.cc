// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/brick/hello.h"

#include <algorithm>
#include <array>

#include "shared/brick/session_codec.h"

namespace pnfsrdma::initiator {

namespace {

// More than a brick grants one client; a peer that goes on for ever is cut off.
constexpr size_t kHelloGrantsMax = 1 << 20;
constexpr uint64_t kSendWorkId = 0;

// Takes one part of the answer. True when it was the last.
Result<bool> take_part(ByteSpan message, Hello& hello) {
  TRY_ASSIGN(brick::SessionMessage decoded, brick::decode_session_message(message));
  const auto* part = std::get_if<brick::HelloReply>(&decoded);
  if (part == nullptr) return fail(EPROTO, "hello: the brick answered with another message");
  if (part->connection == 0) return fail(EPROTO, "hello: connection 0");
  if (hello.grants.size() + part->grants.size() > kHelloGrantsMax)
    return fail(EPROTO, "hello: too many grants");
  hello.verifier = part->verifier;
  hello.connection = part->connection;
  for (const brick::HelloGrant& grant : part->grants) hello.grants[grant.grant] = grant;
  return !part->more;
}

}  // namespace

Result<Hello> say_hello(rdma::QueuePair& queue_pair, const MessageArea& area, SteadyTime deadline) {
  const size_t receives = std::min<size_t>(MessageArea::kReceives, queue_pair.limits().receive_depth);
  for (size_t slot = 0; slot < receives; ++slot) {
    TRY(queue_pair.post_receive(receive_work_id(slot), area.receive_slice(slot)));
  }
  const size_t length = brick::encode_session_message(brick::HelloCall{}, area.send_bytes(0));
  const rdma::LocalSlice call = area.send_slice(0, length);
  TRY(queue_pair.post_send(kSendWorkId, {&call, 1}));
  queue_pair.submit();

  Hello hello;
  bool sent = false;
  bool answered = false;
  std::array<rdma::Completion, MessageArea::kReceives + 1> completions;
  while (!sent || !answered) {
    const bool alive = queue_pair.connected();
    if (!queue_pair.wait(deadline)) return fail(ETIMEDOUT, "hello to " + queue_pair.peer());
    const size_t count = queue_pair.poll(completions);
    if (count == 0 && !alive) return fail(ECONNRESET, "hello to " + queue_pair.peer());
    for (const rdma::Completion& completion : std::span(completions).first(count)) {
      if (completion.outcome != rdma::Outcome::kSuccess) {
        return fail(ECONNRESET, std::string("hello: ") + rdma::to_string(completion.outcome));
      }
      if (!is_receive_work_id(completion.work_id)) {
        sent = true;
        continue;
      }
      const size_t slot = receive_slot(completion.work_id);
      if (answered) return fail(EPROTO, "hello: the brick goes on after the last part");
      TRY_ASSIGN(answered, take_part(area.receive_bytes(slot).first(completion.length), hello));
      TRY(queue_pair.post_receive(receive_work_id(slot), area.receive_slice(slot)));
      queue_pair.submit();
    }
  }
  return hello;
}

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc_rdma/endpoint.h"

#include <cerrno>

#include "shared/rpc/message.h"

namespace pnfsrdma::rpc_rdma {
namespace {

Direction own_calls(Endpoint::Role role) {
  return role == Endpoint::Role::kConnecting ? Direction::kForward : Direction::kReverse;
}
Direction peer_calls(Endpoint::Role role) {
  return role == Endpoint::Role::kConnecting ? Direction::kReverse : Direction::kForward;
}

}  // namespace

Result<std::unique_ptr<Endpoint>> Endpoint::make(Role role, std::shared_ptr<rdma::Transport> transport,
                                                 std::shared_ptr<rdma::ProtectionDomain> domain,
                                                 MessageBuffers buffers,
                                                 std::unique_ptr<rdma::QueuePair> queue_pair,
                                                 ByteSpan private_data, const UpperLayer& upper_layer,
                                                 size_t message_bytes_max) {
  TRY_ASSIGN(auto wire, Wire::make(transport, std::move(domain), std::move(buffers), std::move(queue_pair)));
  return std::unique_ptr<Endpoint>(new Endpoint(role, std::move(transport), std::move(wire),
                                                agree(private_data), upper_layer, message_bytes_max));
}

Endpoint::Endpoint(Role role, std::shared_ptr<rdma::Transport> transport, std::unique_ptr<Wire> wire,
                   Thresholds thresholds, const UpperLayer& upper_layer, size_t message_bytes_max)
    : role_(role),
      transport_(std::move(transport)),
      thresholds_(thresholds),
      upper_layer_(upper_layer),
      requester_(*wire, own_calls(role), thresholds_, upper_layer_, message_bytes_max),
      responder_(*wire, peer_calls(role), thresholds_, upper_layer_, message_bytes_max),
      wire_(std::move(wire)) {}

Result<> Endpoint::send(Bytes head, std::shared_ptr<const Bytes> body) {
  const auto start = rpc::peek_message(head);
  if (!start) return fail(EINVAL, "the outgoing data is not an RPC message");
  Message message{start->xid, std::move(head), std::move(body)};
  if (start->type == rpc::MessageType::kCall) return requester_.call(std::move(message));
  responder_.reply(std::move(message));
  return {};
}

Result<> Endpoint::flush() {
  TRY(responder_.pump());
  TRY(requester_.pump());
  wire_->submit();
  return {};
}

Result<> Endpoint::progress(std::vector<Bytes>& messages) {
  for (;;) {
    TRY_ASSIGN(const bool more, progress_a_turn(messages));
    if (!more) return {};
  }
}

Result<bool> Endpoint::progress_a_turn(std::vector<Bytes>& messages) {
  for (int look = 0; look < kPollsPerTurn; ++look) {
    events_.clear();
    const Result<size_t> count = wire_->poll(events_);
    for (const Wire::Event& event : events_) {
      if (event.received) {
        TRY(received(event.received->message, messages));
        TRY(wire_->give_back(event.received->buffer));
      } else if (event.read) {
        TRY(responder_.pulled(event.read->token, messages));
      }
    }
    if (!count) return std::unexpected(count.error());
    if (*count == 0) return false;
    TRY(flush());
  }
  return true;
}

// One message of the peer's (RFC 8166, 4.5).
Result<> Endpoint::received(ByteSpan message, std::vector<Bytes>& messages) {
  xdr::Decoder decoder(message);
  FixedHeader header;
  if (!decode_fixed(decoder, header)) return {};  // too short to be answered
  if (header.version != kVersion) {
    return header.procedure == Procedure::kError ? Result<>{}
                                                 : responder_.refuse(header.xid, ErrorCode::kVersion);
  }
  switch (header.procedure) {
    case Procedure::kMessage:
    case Procedure::kNoMessage:
      return received_lists(header, decoder, messages);
    case Procedure::kDone:
      return {};
    case Procedure::kError: {
      ErrorBody error;
      if (decode_error(decoder, error)) requester_.error(header, error, messages);
      return {};
    }
    case Procedure::kPadded:
      break;
  }
  return responder_.refuse(header.xid, ErrorCode::kChunk);
}

Result<> Endpoint::received_lists(const FixedHeader& header, xdr::Decoder& decoder,
                                  std::vector<Bytes>& messages) {
  ChunkLists lists;
  if (!decode_lists(decoder, lists)) {
    // Who connected gets replies: one with broken lists cannot be answered, and its call never ends.
    if (role_ == Role::kConnecting) return fail(EPROTO, "a transport header that cannot be decoded");
    return responder_.refuse(header.xid, ErrorCode::kChunk);
  }
  const ByteSpan inlined = decoder.rest();
  bool is_call = !lists.reads.empty();
  if (header.procedure == Procedure::kMessage) {
    // RFC 8167, 4: XIDs of the two directions are independent, the message says which it is.
    const auto start = rpc::peek_message(inlined);
    if (!start || start->xid != header.xid) return fail(EPROTO, "two XIDs in one message");
    is_call = start->type == rpc::MessageType::kCall;
  } else if (!is_call && role_ == Role::kAccepting) {
    return responder_.refuse(header.xid,
                             ErrorCode::kChunk);  // a call, or nothing: replies to us have no chunks
  }
  if (!is_call) return requester_.reply(header, lists, inlined, messages);
  return responder_.call(header, std::move(lists), inlined, messages);
}

Result<std::unique_ptr<Endpoint>> connect(std::shared_ptr<rdma::Transport> transport,
                                          const std::string& address, SteadyTime deadline,
                                          const UpperLayer& upper_layer, size_t message_bytes_max) {
  const auto domain = transport->make_protection_domain();
  TRY_ASSIGN(MessageBuffers buffers, MessageBuffers::make(*transport, domain));
  TRY_ASSIGN(rdma::Connected connected,
             transport->connect(
                 address, domain,
                 {.private_data = our_private_data(), .limits = queue_pair_limits(), .deadline = deadline}));
  return Endpoint::make(Endpoint::Role::kConnecting, std::move(transport), domain, std::move(buffers),
                        std::move(connected.queue_pair), connected.private_data, upper_layer,
                        message_bytes_max);
}

}  // namespace pnfsrdma::rpc_rdma

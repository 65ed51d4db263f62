// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/verbs/connector.h"

#include <algorithm>
#include <cerrno>

#include "shared/rdma/verbs/address.h"
#include "shared/rdma/verbs/private_data.h"
#include "shared/rdma/verbs/queue_pair.h"

namespace pnfsrdma::rdma::verbs {
namespace {

// IB_CM_REJ_CONSUMER_DEFINED: the peer's program has rejected, and the private data is its own. iWARP has
// only errnos.
constexpr int kRejectedByProgram = 28;

Error refused(const std::string& address, const ConnectionEvent& event) {
  if (event.status == kRejectedByProgram || event.status == -ECONNREFUSED) {
    const PrivateData said = decode_private_data(event.private_data);
    if (said.prefixed && !said.user.empty()) return {ECONNREFUSED, std::string(as_text(said.user))};
    return {ECONNREFUSED, address + " rejected the connection"};
  }
  return {ECONNREFUSED,
          "nobody listens by RDMA on " + address + " (reason " + std::to_string(event.status) + ")"};
}

// What went wrong when another event came than the one expected.
Error failure(const std::string& address, const ConnectionEvent& event) {
  const int number = event.status < 0 ? -event.status : 0;
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return {number == 0 ? EHOSTUNREACH : number, "no RDMA device leads to " + address};
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return {EHOSTUNREACH, "no RDMA route to " + address};
    case RDMA_CM_EVENT_UNREACHABLE:
      return {number == ETIMEDOUT || number == 0 ? ETIMEDOUT : EHOSTUNREACH,
              address + " does not answer by RDMA"};
    case RDMA_CM_EVENT_REJECTED:
      return refused(address, event);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return {ENODEV, "the RDMA device was removed"};
    default:
      return {EPROTO, std::string("connecting to ") + address + ": " + rdma_event_str(event.type)};
  }
}

Result<ConnectionEvent> expect(ConnectionEvents& events, const std::string& address, SteadyTime deadline,
                               rdma_cm_event_type wanted, rdma_cm_event_type or_this) {
  auto event = events.wait(deadline);
  if (!event) return std::unexpected(event.error().in("connecting by RDMA to " + address));
  if (event->type != wanted && event->type != or_this) return std::unexpected(failure(address, *event));
  return event;
}

// Binds a new identifier to the device that leads to `target`.
Result<Identifier> resolve(ConnectionEvents& events, Address target, const std::string& address,
                           const Device& device, SteadyTime deadline) {
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(events.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
    return std::unexpected(Error::from_errno("rdma_create_id"));
  }
  Identifier identifier(raw);
  if (rdma_resolve_addr(raw, nullptr, target.get(), milliseconds_until(deadline)) != 0) {
    const int reason = errno == ENODEV ? EHOSTUNREACH : errno;
    return fail(reason, "no RDMA device leads to " + address);
  }
  TRY(expect(events, address, deadline, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_RESOLVED));
  if (raw->verbs != device.context()) return fail(EXDEV, device.name() + " does not lead to " + address);
  if (rdma_resolve_route(raw, milliseconds_until(deadline)) != 0) {
    return std::unexpected(Error::from_errno("finding the RDMA route to " + address));
  }
  TRY(expect(events, address, deadline, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED));
  return identifier;
}

Result<> ask(rdma_cm_id* identifier, uint32_t queue_pair_number, uint8_t read_depth,
             const Bytes& private_data) {
  rdma_conn_param parameters{};
  parameters.private_data = private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(private_data.size());
  parameters.responder_resources = read_depth;
  parameters.initiator_depth = read_depth;
  parameters.retry_count = RetryOptions().retries;
  parameters.rnr_retry_count = RetryOptions().rnr_retries;
  parameters.qp_num = queue_pair_number;
  if (rdma_connect(identifier, &parameters) == 0) return {};
  return std::unexpected(Error::from_errno("rdma_connect"));
}

}  // namespace

Result<Connected> connect(std::shared_ptr<VerbsDomain> domain, const std::string& address,
                          const ConnectOptions& options) {
  if (options.private_data.size() > kUserPrivateDataMax) return fail(EMSGSIZE, "too much private data");
  const Device& device = *domain->device();
  TRY_ASSIGN(const Address target, Address::parse(address));
  TRY_ASSIGN(ConnectionEvents events, ConnectionEvents::make());
  TRY_ASSIGN(Identifier identifier, resolve(events, target, address, device, options.deadline));

  const auto depth = static_cast<uint8_t>(
      std::clamp<uint32_t>(options.limits.read_depth, 1, std::min(device.limits().read_depth_max, 255u)));
  TRY_ASSIGN(auto queue_pair, VerbsQueuePair::make(std::move(domain), std::move(events),
                                                   std::move(identifier), options.limits));
  Endpoint& endpoint = queue_pair->endpoint();
  const Bytes said = encode_private_data({.prefixed = true,
                                          .native_flush = endpoint.can_flush(),
                                          .atomic_write = endpoint.can_write_atomically(),
                                          .user = options.private_data});
  TRY(ask(endpoint.identifier(), endpoint.queue_pair()->qp_num, depth, said));
  // iWARP establishes by itself, the others tell the answer and leave the rest to us.
  TRY_ASSIGN(const ConnectionEvent answer, expect(endpoint.events(), address, options.deadline,
                                                  RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_ESTABLISHED));
  const uint8_t reads_out = answer.initiator_depth == 0 ? depth : std::min(depth, answer.initiator_depth);
  const uint8_t reads_in =
      answer.responder_resources == 0 ? depth : std::min(depth, answer.responder_resources);
  if (answer.type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
    TRY(endpoint.modify_to_ready(reads_in, reads_out, {}));
    if (rdma_establish(endpoint.identifier()) != 0)
      return std::unexpected(Error::from_errno("rdma_establish"));
  }
  PrivateData reply = decode_private_data(answer.private_data);
  queue_pair->established(reads_out, reply);
  return Connected{std::move(queue_pair), std::move(reply.user)};
}

}  // namespace pnfsrdma::rdma::verbs

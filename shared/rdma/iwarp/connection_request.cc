// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/connection_request.h"

#include <sys/socket.h>

#include <cerrno>

#include "shared/rdma/iwarp/tcp_stream.h"

namespace pnfsrdma::rdma::iwarp {

Result<> send_frame(int socket, const MpaFrame& frame) {
  Bytes bytes = encode_mpa_frame(frame);
  ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count == static_cast<ssize_t>(bytes.size())) return {};
  if (count < 0) return std::unexpected(Error::from_errno("sending an MPA frame"));
  return fail(EPIPE, "sending an MPA frame");
}

IwarpConnectionRequest::IwarpConnectionRequest(FileDescriptor socket, MpaFrame request, bool crc)
    : socket_(std::move(socket)),
      request_(std::move(request)),
      prefix_(take_prefix(request_.private_data)),
      crc_(crc),
      peer_(peer_address(socket_.get()).to_string()) {}

IwarpConnectionRequest::~IwarpConnectionRequest() {
  if (socket_) reject({});
}

Result<std::unique_ptr<QueuePair>> IwarpConnectionRequest::accept(std::shared_ptr<ProtectionDomain> domain,
                                                                  ByteSpan private_data,
                                                                  const QueuePairLimits& limits) {
  if (!socket_) return fail(EALREADY, "this connection request was answered before");
  if (private_data.size() > kPrivateDataMax) return fail(EMSGSIZE, "too much private data");
  auto software = std::dynamic_pointer_cast<SoftwareDomain>(std::move(domain));
  if (software == nullptr) return fail(EINVAL, "the protection domain belongs to another transport");
  Answer answer = answer_request(limits, request_, prefix_, crc_, private_data);
  const int socket = socket_.get();
  TRY_ASSIGN(auto stream, TcpStream::make(std::move(socket_)));
  // Nothing may be sent behind the Reply before the peer has spoken: the queue pair sees to that.
  auto queue_pair =
      std::make_unique<IwarpQueuePair>(std::move(stream), std::move(software), answer.agreement);
  TRY(send_frame(socket, answer.reply));
  return queue_pair;
}

void IwarpConnectionRequest::reject(ByteSpan private_data) {
  if (!socket_) return;
  FileDescriptor socket = std::move(socket_);
  if (private_data.size() > kPrivateDataMax) private_data = private_data.first(kPrivateDataMax);
  // A peer that has gone already will not miss it.
  static_cast<void>(send_frame(socket.get(), make_reject(request_, prefix_, private_data)));
}

}  // namespace pnfsrdma::rdma::iwarp

// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/transport.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "shared/rdma/iwarp/connection_request.h"
#include "shared/rdma/iwarp/listener.h"
#include "shared/rdma/iwarp/negotiation.h"
#include "shared/rdma/iwarp/tcp_stream.h"

namespace pnfsrdma::rdma::iwarp {
namespace {

// Exactly `bytes`, not one more: what follows is the stream's.
Result<> receive_exactly(int socket, MutableByteSpan bytes, SteadyTime deadline) {
  while (!bytes.empty()) {
    if (!wait_for_events(socket, POLLIN, deadline)) return fail(ETIMEDOUT, "waiting for the MPA reply");
    ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return std::unexpected(Error::from_errno("waiting for the MPA reply"));
    if (count == 0) return fail(ECONNRESET, "the peer closed the connection instead of sending an MPA reply");
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<MpaFrame> receive_reply(int socket, SteadyTime deadline) {
  Bytes bytes(kMpaHeader);
  TRY(receive_exactly(socket, bytes, deadline));
  auto header = decode_mpa_header(bytes, true);
  if (!header) return fail(EPROTO, to_string(header.error()));
  Bytes body(header->length);
  TRY(receive_exactly(socket, body, deadline));
  auto frame = decode_mpa_body(*std::move(header), body);
  if (!frame) return fail(EPROTO, to_string(frame.error()));
  return *std::move(frame);
}

class IwarpTransport final : public Transport {
 public:
  IwarpTransport(const Options& options, Random& random) : options_(options), random_(random) {}

  std::string name() const override { return "iwarp"; }

  std::shared_ptr<ProtectionDomain> make_protection_domain() override {
    return std::make_shared<SoftwareDomain>();
  }

  Result<std::unique_ptr<Region>> register_region(std::shared_ptr<ProtectionDomain> domain,
                                                  MutableByteSpan memory, Access access,
                                                  Flusher* flusher) override {
    return make_software_region(std::move(domain), memory, access, flusher, random_);
  }

  Result<Connected> connect(const std::string& address, std::shared_ptr<ProtectionDomain> domain,
                            const ConnectOptions& options) override;

  Result<std::unique_ptr<Listener>> listen(
      const std::string& address,
      std::function<void(std::unique_ptr<ConnectionRequest>)> on_request) override {
    return IwarpListener::make(address, options_, std::move(on_request));
  }

 private:
  const Options options_;
  Random& random_;
};

Result<Connected> IwarpTransport::connect(const std::string& address,
                                          std::shared_ptr<ProtectionDomain> domain,
                                          const ConnectOptions& options) {
  if (options.private_data.size() > kPrivateDataMax) return fail(EMSGSIZE, "too much private data");
  auto software = std::dynamic_pointer_cast<SoftwareDomain>(std::move(domain));
  if (software == nullptr) return fail(EINVAL, "the protection domain belongs to another transport");
  TRY_ASSIGN(FileDescriptor socket, connect_tcp(address, options_.socket_buffer_bytes, options.deadline));
  MpaFrame request = make_request(options.limits, options_.mpa_revision,
                                  wants_crc(options_.crc, socket.get()), options.private_data);
  TRY(send_frame(socket.get(), request));
  TRY_ASSIGN(MpaFrame reply, receive_reply(socket.get(), options.deadline));
  Prefixed prefix = take_prefix(reply.private_data);
  if (reply.rejected) {
    std::string reason(as_text(prefix.private_data));
    return fail(ECONNREFUSED, reason.empty() ? address + " rejected the connection" : std::move(reason));
  }
  TRY_ASSIGN(Agreement agreement, agree_on_reply(options.limits, request, reply, prefix));
  TRY_ASSIGN(auto stream, TcpStream::make(std::move(socket)));
  return Connected{std::make_unique<IwarpQueuePair>(std::move(stream), std::move(software), agreement),
                   std::move(prefix.private_data)};
}

}  // namespace

std::unique_ptr<Transport> make_transport(const Options& options, Random& random) {
  return std::make_unique<IwarpTransport>(options, random);
}

}  // namespace pnfsrdma::rdma::iwarp

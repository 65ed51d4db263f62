// SPDX-License-Identifier: Apache-2.0
#include "shared/rdma/iwarp/listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "shared/base/log.h"
#include "shared/base/sync.h"
#include "shared/rdma/iwarp/connection_request.h"
#include "shared/rdma/iwarp/tcp_stream.h"

namespace pnfsrdma::rdma::iwarp {

bool wants_crc(CrcPolicy policy, int socket) {
  switch (policy) {
    case CrcPolicy::kRequire:
      return true;
    case CrcPolicy::kDecline:
      return false;
    case CrcPolicy::kAuto:
      break;
  }
  return !peer_address(socket).loopback();
}

Result<std::unique_ptr<Listener>> IwarpListener::make(const std::string& address, const Options& options,
                                                      OnRequest on_request) {
  TRY_ASSIGN(const std::vector<SocketAddress> addresses, resolve(address, true));
  const SocketAddress& local = addresses.front();
  // Buffer sizes are inherited by accepted sockets and have to be set before listen(2) to scale the window.
  TRY_ASSIGN(FileDescriptor socket, make_socket(local.family(), options.socket_buffer_bytes));
  int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket.get(), local.get(), local.size) != 0) {
    return std::unexpected(Error::from_errno("listening on " + address));
  }
  if (::listen(socket.get(), SOMAXCONN) != 0)
    return std::unexpected(Error::from_errno("listening on " + address));
  FileDescriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return std::unexpected(Error::from_errno("eventfd"));
  return std::unique_ptr<Listener>(
      new IwarpListener(std::move(socket), std::move(wake), options, std::move(on_request)));
}

IwarpListener::IwarpListener(FileDescriptor socket, FileDescriptor wake, const Options& options,
                             OnRequest on_request)
    : options_(options),
      on_request_(std::move(on_request)),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      address_(local_address(socket_.get()).to_string()),
      thread_([this] { run(); }) {}

IwarpListener::~IwarpListener() {
  uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof(one)));
  thread_.join();
}

void IwarpListener::run() {
  std::vector<pollfd> entries;
  for (;;) {
    entries.assign({{wake_.get(), POLLIN, 0}, {socket_.get(), POLLIN, 0}});
    SteadyTime nearest = SteadyTime::max();
    for (const Handshake& handshake : handshakes_) {
      entries.push_back({handshake.socket.get(), POLLIN, 0});
      nearest = std::min(nearest, handshake.deadline);
    }
    int timeout = -1;
    if (!handshakes_.empty()) {
      auto left = std::chrono::ceil<Milliseconds>(nearest - steady_now());
      timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60000));
    }
    if (::poll(entries.data(), entries.size(), timeout) < 0 && errno != EINTR) {
      log_error("iwarp", "listener-failed address={} errno={}", address_, errno);
      return;
    }
    if (entries[0].revents != 0) return;
    SteadyTime now = steady_now();
    for (size_t i = handshakes_.size(); i-- > 0;) {
      bool going_on = entries[i + 2].revents == 0 || read_some(handshakes_[i]);
      if (going_on && handshakes_[i].deadline > now) continue;
      handshakes_.erase(handshakes_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (entries[1].revents != 0) accept_one();
  }
}

void IwarpListener::accept_one() {
  FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    // Out of descriptors: the connection stays in the queue; do not turn that into a busy loop.
    if (errno == EMFILE || errno == ENFILE) sleep_for(Milliseconds(10));
    return;
  }
  // The peer that has kept us waiting longest makes room.
  if (handshakes_.size() >= kHandshakesMax) handshakes_.erase(handshakes_.begin());
  set_connection_options(socket.get(), 0);
  Handshake handshake;
  handshake.socket = std::move(socket);
  handshake.deadline = steady_now() + options_.request_timeout;
  handshakes_.push_back(std::move(handshake));
}

// Reads what there is of the Request and not a byte more.
bool IwarpListener::read_some(Handshake& handshake) {
  size_t have = handshake.bytes.size();
  handshake.bytes.resize(handshake.wanted);
  ssize_t count =
      ::recv(handshake.socket.get(), handshake.bytes.data() + have, handshake.wanted - have, MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    count = 0;
  else if (count <= 0)
    return false;
  handshake.bytes.resize(have + static_cast<size_t>(count));
  if (handshake.bytes.size() < handshake.wanted) return true;
  if (handshake.wanted == kMpaHeader) {
    auto header = decode_mpa_header(handshake.bytes, false);
    if (!header) {
      log_info("iwarp", "handshake-refused cause=\"{}\"", to_string(header.error()));
      return false;
    }
    handshake.header = *std::move(header);
    handshake.wanted += handshake.header.length;
    if (handshake.header.length > 0) return true;
  }
  return frame_whole(handshake);
}

bool IwarpListener::frame_whole(Handshake& handshake) {
  auto frame = decode_mpa_body(std::move(handshake.header), ByteSpan(handshake.bytes).subspan(kMpaHeader));
  if (!frame) return false;
  // An FPDU pipelined behind the Request breaks RFC 5044, 7.1.2: the peer has to wait for the Reply.
  std::byte extra;
  if (::recv(handshake.socket.get(), &extra, 1, MSG_DONTWAIT | MSG_PEEK) >= 0) return false;
  if (frame->markers) {
    log_info("iwarp", "handshake-refused cause=\"the peer wants markers\"");
    static_cast<void>(
        send_frame(handshake.socket.get(), make_reject(*frame, take_prefix(frame->private_data), {})));
    return false;
  }
  bool crc = wants_crc(options_.crc, handshake.socket.get());
  on_request_(std::make_unique<IwarpConnectionRequest>(std::move(handshake.socket), *std::move(frame), crc));
  return false;
}

}  // namespace pnfsrdma::rdma::iwarp

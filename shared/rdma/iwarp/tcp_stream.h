// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>

#include <memory>
#include <vector>

#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/rdma/iwarp/stream.h"

namespace pnfsrdma::rdma::iwarp {

// A connected TCP socket as a Stream.
class TcpStream final : public Stream {
 public:
  // Takes the socket. Errors: of eventfd(2).
  static Result<std::unique_ptr<Stream>> make(FileDescriptor socket);

  ssize_t receive(std::span<const iovec> into) override;
  ssize_t receive_blocking(MutableByteSpan into, SteadyTime deadline) override;
  ssize_t send(std::span<const iovec> from) override;
  bool wait_ready(bool readable, bool writable, SteadyTime deadline) override;
  void wake() override;
  void finish_sending() override;
  void shut_down() override;
  int fd() const override;
  void watch_writable(bool on) override;
  std::string peer() const override;

 private:
  TcpStream(FileDescriptor socket, FileDescriptor wake)
      : socket_(std::move(socket)), wake_(std::move(wake)) {}
  void set_receive_timeout(Milliseconds timeout);

  FileDescriptor socket_;
  // Holds the socket alone: an fd that is readable when the socket is, and also when it is writable while
  // output waits.
  FileDescriptor wake_;
  Milliseconds receive_timeout_{0};  // SO_RCVTIMEO as it stands; 0: none
  // Holds the socket alone: an fd that is readable when the socket is, and also when it is writable while
  // output waits. Made when first asked for, as it costs something with every packet.
  mutable Mutex epoll_mutex_;
  mutable FileDescriptor epoll_;
  bool watching_writable_ = false;
};

// An address of the socket API.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool loopback() const;
  // "127.0.0.1:20050", "[::1]:20050"
  std::string to_string() const;
};
// "host:port" to the addresses it stands for, at least one. EINVAL, EHOSTUNREACH.
Result<std::vector<SocketAddress>> resolve(const std::string& address, bool passive);
SocketAddress peer_address(int socket);
SocketAddress local_address(int socket);

// A socket with the options every connection of ours has: no delay, big buffers, an end within two minutes
// when the peer has vanished.
Result<FileDescriptor> make_socket(int family, int buffer_bytes);
void set_connection_options(int socket, int buffer_bytes);
// Connects to the first of the host's addresses that answers and blocks until `deadline`. ETIMEDOUT,
// ECONNREFUSED, EHOSTUNREACH, …
Result<FileDescriptor> connect_tcp(const std::string& address, int buffer_bytes, SteadyTime deadline);

// Waits for poll(2) events on one fd, or for `wake` to be readable, until `deadline`. False when it passed.
bool wait_for_events(int fd, short events, SteadyTime deadline, int wake = -1);

}  // namespace pnfsrdma::rdma::iwarp

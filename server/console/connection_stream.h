// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <string>

#include "server/console/http.h"
#include "shared/base/owned.h"

namespace pnfsrdma::console {

using TlsContext = Owned<SSL_CTX, SSL_CTX_free>;
using TlsConnection = Owned<SSL, SSL_free>;

// One accepted connection, plain or TLS, with a deadline for whatever the peer is waited for: a peer that
// sends a byte now and then holds a thread no longer than one that sends nothing. Owned by its thread.
class ConnectionStream final : public httplib::Stream {
 public:
  // `context` null: plain. `stopping` ends every wait.
  ConnectionStream(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping);
  ~ConnectionStream() override;

  // TLS: false when the peer does not speak it or takes too long.
  bool handshake();
  // Waits until a request begins: false when the peer has gone, is idle too long, or the server stops.
  bool wait_for_request();
  // From here on what is written is gathered; false, and for good, when it could not be sent at last. A head
  // and a body that leave as one wake the peer once.
  void gather() { gathering_ = true; }
  bool release();
  // Ends our side and reads what the peer still sends, a little and for a moment: a connection closed over
  // unread bytes is reset, and the answer is lost with it.
  void drain();
  const Peer& peer() const { return peer_; }

  bool is_readable() const override;
  bool is_writable() const override;
  // Newer versions of httplib ask for these.
  bool wait_readable() const { return is_readable(); }
  bool wait_writable() const { return is_writable(); }
  time_t duration() const { return 0; }
  ssize_t read(char* buffer, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_.get(); }

 private:
  bool send_all(const char* bytes, size_t size);
  bool wait(short events, SteadyTime deadline) const;
  // What to wait for before the TLS call that gave `result` is repeated; 0: it failed.
  short wanted(int result) const;

  FileDescriptor socket_;
  TlsConnection tls_;
  const std::atomic<bool>& stopping_;
  Peer peer_;
  SteadyTime request_deadline_;
  size_t request_bytes_ = 0;
  // httplib reads heads byte by byte.
  std::string buffered_;
  size_t consumed_ = 0;
  bool gathering_ = false;
  std::string gathered_;
};

// Of a connected socket.
Peer peer_of(int socket);

}  // namespace pnfsrdma::console

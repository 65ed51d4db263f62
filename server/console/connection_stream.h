// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <string>

#include "server/console/http.h"
#include "shared/base/owned.h"
#include "shared/http/peer_stream.h"

namespace pnfsrdma::console {

using TlsContext = Owned<SSL_CTX, SSL_CTX_free>;

// A connection of the console's: requests one after the other, each with a deadline, and answers that leave as one.
// Owned by its thread.
class ConnectionStream final : public http::PeerStream {
 public:
  // `context` null: plain. `stopping` ends every wait.
  ConnectionStream(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping);

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
  ssize_t read(char* buffer, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;

 private:
  bool send_now(const char* bytes, size_t size);

  const Peer peer_;
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <atomic>

#include "shared/base/clock.h"
#include "shared/base/owned.h"
#include "shared/http/peer_stream.h"

namespace pnfsrdma::mds {

// A connection that a CopyServer has accepted, with TLS, for one request. One deadline stands for the handshake and the
// request together. Owned by its thread.
class CopyConnection final : public http::PeerStream {
 public:
  static constexpr Milliseconds kRequestPatience{2000};  // from the connection to the request's last byte
  static constexpr Milliseconds kWritePatience{20'000};  // while the peer takes nothing

  // As of PeerStream; `context` is not null.
  CopyConnection(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping);

  // False: the peer shows no certificate that `context` accepts, or took too long.
  bool handshake() { return PeerStream::handshake(request_deadline_); }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* buffer, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;

 private:
  const SteadyTime request_deadline_;
};

}  // namespace pnfsrdma::mds

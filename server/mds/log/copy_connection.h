// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/ssl.h>

#include <atomic>

#include "shared/base/clock.h"
#include "shared/base/owned.h"
#include "shared/http/peer_stream.h"

namespace pnfsrdma::mds {

// How slowly a peer may take what is written to it.
struct CopyPace {
  Milliseconds patience{20'000};         // while it takes nothing, and at the beginning
  size_t bytes_per_second = 256 * 1024;  // on the whole, least
};

// A connection that a CopyServer has accepted, with TLS, for one request. One deadline stands for the handshake and the
// request together; a peer that takes a little now and then keeps others from their copies no longer than CopyPace
// says. Owned by its thread.
class CopyConnection final : public http::PeerStream {
 public:
  static constexpr Milliseconds kRequestPatience{2000};  // from the connection to the request's last byte

  // As of PeerStream; `context` is not null.
  CopyConnection(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping,
                 CopyPace pace = {});

  // False: the peer shows no certificate that `context` accepts, or took too long.
  bool handshake() { return PeerStream::handshake(request_deadline_); }

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* buffer, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;

 private:
  // Until the peer has to take more.
  SteadyTime write_deadline() const;

  const SteadyTime request_deadline_;
  const CopyPace pace_;
  size_t written_ = 0;
  mutable SteadyTime::duration waited_{};  // for the peer to take something
};

}  // namespace pnfsrdma::mds

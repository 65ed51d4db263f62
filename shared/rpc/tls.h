// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

// RPC-with-TLS (RFC 9289) as connections and streams see it. shared/rpc_tls has it from OpenSSL; a program that never
// makes an endpoint does not link that.
namespace pnfsrdma::rpc {

// The verifier of a reply that accepts the probe (RFC 9289, 4.1).
inline constexpr std::string_view kStartTls = "STARTTLS";
// The only protocol that both sides offer by ALPN (RFC 9289, 5).
inline constexpr std::string_view kAlpnProtocol = "sunrpc";

// Who is at the other end, from its certificate, which has been verified.
struct TlsPeer {
  std::string subject;             // "O=pnfsrdma, CN=alpha"
  std::vector<std::string> names;  // DNS names and addresses of subjectAltName, then the common name

  // "alpha", for the log: the last name, else the subject.
  const std::string& name() const { return names.empty() ? subject : names.back(); }
};

// One TLS session: turns plaintext into ciphertext and back, in memory, without I/O. Not thread-safe. After an error
// nothing of it may be used but output(), which may have the alert that tells the peer.
class TlsSession {
 public:
  virtual ~TlsSession() = default;

  // Goes on with the handshake, with what the peer has sent meanwhile. True: it is over, and the peer is who it has to
  // be. EACCES: the peer is not, or does not take us; EPROTO: what came is no TLS 1.3 for "sunrpc".
  virtual Result<bool> handshake(ByteSpan came) = 0;
  // Decrypts what came, behind what waits of earlier calls, into `to` (not empty): how many bytes that gave; what finds
  // no room waits. 0: a whole TLS record has to come first, or ended(). EPROTO: it was changed on its way.
  virtual Result<size_t> read(ByteSpan came, MutableByteSpan to) = 0;
  // Whether read() would give more without further bytes of the peer.
  virtual bool has_plaintext() const = 0;
  // The peer has sent close_notify: nothing comes behind it.
  virtual bool ended() const = 0;
  // Of at most kTlsRecordBytes: one TLS record in output().
  virtual Result<> write(ByteSpan plaintext) = 0;
  // Puts close_notify into output(), if the handshake is over. Harmless behind an error.
  virtual void end() = 0;

  // What is to be sent to the peer. Whoever sends it takes it out.
  virtual Bytes& output() = 0;
  // Memory it holds, besides output().
  virtual size_t held_bytes() const = 0;
  // A TLS record has come in part.
  virtual bool mid_record() const = 0;

  // After the handshake.
  virtual const TlsPeer& peer() const = 0;
  // Whether the peer's certificate would be taken by the endpoint's configuration of now (RFC 9289, 5.2.1). EACCES.
  virtual Result<> reassess() const = 0;
};

// Plaintext of one TLS record (RFC 8446, 5.1).
inline constexpr size_t kTlsRecordBytes = size_t{1} << 14;

// One side's certificate and whom it trusts; makes the sessions. Loop thread only.
class TlsEndpoint {
 public:
  virtual ~TlsEndpoint() = default;
  // `peer`: the name or address that a client has dialled, which the server's certificate must name; a server gives
  // none. Errors are those of memory.
  virtual Result<std::unique_ptr<TlsSession>> begin(const std::string& peer) = 0;
};

}  // namespace pnfsrdma::rpc

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <string>

#include "shared/base/clock.h"
#include "shared/base/owned.h"

namespace pnfsrdma::http {

// The address of a connected socket's peer, numeric, without the port: an IPv4 one as such, if it came over
// IPv6, too. Empty: a Unix socket. "unknown": the peer has gone.
std::string address_of_peer(int socket);

// A connection that a server has accepted, plain or with TLS. Each wait has a deadline: a peer that sends a
// byte now and then holds a thread no longer than a silent one, nor does one that sends new keys without end (RFC 8446,
// 4.6.3). Owned by its thread.
class PeerStream : public httplib::Stream {
 public:
  // `context` null: plain. `stopping` ends whatever waits, within 100 ms. Both outlive this.
  PeerStream(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping);
  ~PeerStream() override;
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  // False: the peer does not speak TLS, shows no certificate that `context` accepts, or took too long. Plain:
  // true.
  bool handshake(SteadyTime deadline);
  const std::string& address() const { return address_; }

  // Newer versions of httplib ask for these.
  bool wait_readable() const { return is_readable(); }
  bool wait_writable() const { return is_writable(); }
  time_t duration() const { return 0; }
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_.get(); }

 protected:
  bool stopping() const { return stopping_; }
  // False: not before the deadline, or this server stops.
  bool wait(short events, SteadyTime deadline) const;
  // What has come, at least a byte. 0: a plain peer has ended its side; -1: broken, or nothing before the
  // deadline.
  ssize_t receive(char* buffer, size_t size, SteadyTime deadline);
  // All of it. False: broken, or not before the deadline.
  bool send_all(const char* bytes, size_t size, SteadyTime deadline);
  // Of TLS: bytes that have come and were not received.
  bool has_pending() const { return tls_ && SSL_pending(tls_.get()) > 0; }
  // Ends our side: the peer reads the end.
  void end_sending();

 private:
  // What to wait for before a call that gave `result` is repeated; 0: it failed. Plain: by errno.
  short wanted(ssize_t result, short plain) const;
  static void record_seen(int written, int version, int type, const void* bytes, size_t size, SSL* tls,
                          void* self);

  const FileDescriptor socket_;
  const Owned<SSL, SSL_free> tls_;
  const bool plain_;
  const std::atomic<bool>& stopping_;
  const std::string address_;
  size_t owed_ = 0;  // bytes of data, for records of TLS that had none
};

}  // namespace pnfsrdma::http

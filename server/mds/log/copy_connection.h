// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <httplib.h>
#include <openssl/ssl.h>

#include <atomic>
#include <string>

#include "shared/base/clock.h"
#include "shared/base/owned.h"

namespace pnfsrdma::mds {

// A connection that a CopyServer has accepted, with TLS. One deadline stands for the handshake and the request
// together: a peer that sends a byte now and then holds a thread no longer than a silent one. Owned by its thread.
class CopyConnection final : public httplib::Stream {
 public:
  static constexpr Milliseconds kRequestPatience{2000};  // from the connection to the request's last byte
  static constexpr Milliseconds kWritePatience{20'000};  // while the peer takes nothing

  // `stopping` ends whatever waits, within 100 ms. It and `context` outlive this.
  CopyConnection(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping);
  ~CopyConnection() override;

  // False: the peer shows no certificate that `context` accepts, or took too long.
  bool handshake();
  const std::string& peer() const { return peer_; }  // its address, without the port

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
  bool wait(short events, SteadyTime deadline) const;
  // For what the TLS call that gave `result` needs before it is repeated. False: it failed, or there was no time left.
  bool wait_for(int result, SteadyTime deadline) const;

  const FileDescriptor socket_;
  const Owned<SSL, SSL_free> tls_;
  const std::atomic<bool>& stopping_;
  const std::string peer_;
  const SteadyTime request_deadline_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shared/base/owned.h"
#include "shared/base/sync.h"
#include "shared/initiator/session/socket.h"
#include "shared/rpc/record.h"
#include "shared/rpc/socket_address.h"

namespace pnfsrdma::initiator {

// A session's connection by TCP. One send() for a record unless the socket's buffer is full, one recv() for
// what there is.
class SessionTcpSocket final : public SessionSocket {
 public:
  static Result<std::shared_ptr<SessionSocket>> connect(const rpc::SocketAddress& address,
                                                        Milliseconds timeout, size_t record_bytes_max,
                                                        Counters& counters);
  // Takes a connected stream socket.
  SessionTcpSocket(FileDescriptor socket, size_t record_bytes_max, Counters& counters);

  Result<> send(ByteSpan record, Milliseconds patience) override;
  Result<> receive(bool wait, std::vector<Bytes>& records) override;
  void shut_down() override;
  int fd() const override { return socket_.get(); }

 private:
  FileDescriptor socket_;
  Counters& counters_;
  Mutex send_mutex_;
  rpc::RecordReader reader_;
};

}  // namespace pnfsrdma::initiator

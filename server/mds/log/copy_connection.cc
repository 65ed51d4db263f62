// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/copy_connection.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

constexpr size_t kRecordBytes = 16 << 10;  // of TLS: each that has left is progress

}  // namespace

CopyConnection::CopyConnection(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping)
    : PeerStream(std::move(socket), context, stopping), request_deadline_(steady_now() + kRequestPatience) {}

bool CopyConnection::is_readable() const {
  return has_pending() || wait(POLLIN, request_deadline_);
}

bool CopyConnection::is_writable() const {
  return wait(POLLOUT, steady_now() + kWritePatience);
}

ssize_t CopyConnection::read(char* buffer, size_t size) {
  if (stopping() || steady_now() >= request_deadline_) return -1;
  return receive(buffer, size, request_deadline_);
}

ssize_t CopyConnection::write(const char* bytes, size_t size) {
  for (size_t written = 0; written < size;) {
    const size_t record = std::min(size - written, kRecordBytes);
    if (stopping() || !send_all(bytes + written, record, steady_now() + kWritePatience)) return -1;
    written += record;
  }
  return static_cast<ssize_t>(size);
}

}  // namespace pnfsrdma::mds

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

CopyConnection::CopyConnection(FileDescriptor socket, SSL_CTX* context, const std::atomic<bool>& stopping,
                               CopyPace pace)
    : PeerStream(std::move(socket), context, stopping),
      request_deadline_(steady_now() + kRequestPatience),
      pace_(pace) {}

bool CopyConnection::is_readable() const {
  return has_pending() || wait(POLLIN, request_deadline_);
}

SteadyTime CopyConnection::write_deadline() const {
  const auto allowed = pace_.patience + Milliseconds(written_ * 1000 / pace_.bytes_per_second);
  return steady_now() + std::min<SteadyTime::duration>(pace_.patience, allowed - waited_);
}

bool CopyConnection::is_writable() const {
  const SteadyTime begun = steady_now();
  const bool takes = wait(POLLOUT, write_deadline());
  waited_ += steady_now() - begun;
  return takes;
}

ssize_t CopyConnection::read(char* buffer, size_t size) {
  if (stopping() || steady_now() >= request_deadline_) return -1;
  return receive(buffer, size, request_deadline_);
}

ssize_t CopyConnection::write(const char* bytes, size_t size) {
  for (size_t written = 0; written < size;) {
    const size_t record = std::min(size - written, kRecordBytes);
    const SteadyTime begun = steady_now();
    if (stopping() || !send_all(bytes + written, record, write_deadline())) return -1;
    waited_ += steady_now() - begun;
    written += record;
    written_ += record;
  }
  return static_cast<ssize_t>(size);
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "shared/base/clock.h"
#include "shared/base/random.h"
#include "shared/rdma/transport.h"

namespace pnfsrdma::rdma::iwarp {

// Whether FPDUs carry a CRC32C that is checked. Either side's wish turns it on for both (RFC 5044, 7.1).
enum class CrcPolicy : uint8_t {
  kAuto,     // asked for unless the connection runs over a loopback address
  kRequire,  // asked for always
  kDecline,  // never asked for; still done when the peer asks
};

struct Options {
  CrcPolicy crc = CrcPolicy::kAuto;
  // The revision connect() offers: 2 negotiates read depths (RFC 6581), 1 does not. Listeners take both.
  uint8_t mpa_revision = 2;
  // A peer that has connected by TCP must have sent its MPA Request by then.
  Milliseconds request_timeout{5000};
  // SO_SNDBUF and SO_RCVBUF, bytes. The kernel's limits (net.core.[rw]mem_max) cap it.
  int socket_buffer_bytes = 4 << 20;
};

// iWARP in user space over this host's TCP. Thread-safe; its only thread is one per listener, for handshakes.
// STags come from `random`, which must outlive the transport (SystemRandom in a daemon: never a seeded one).
//
// A queue pair works in the threads that call it and in no other: somebody has to be in wait() or poll() for
// the peer's requests to be served. The target of one-sided operations runs, per connection,
//   while (queue_pair->connected()) { queue_pair->wait(far_deadline); count = queue_pair->poll(completions);
//   … }
std::unique_ptr<Transport> make_transport(const Options& options, Random& random);

}  // namespace pnfsrdma::rdma::iwarp

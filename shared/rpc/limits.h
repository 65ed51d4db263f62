// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace pnfsrdma::rpc {

// One record, its fragments joined: 1 MiB of file data and 64 KiB for all around it.
inline constexpr size_t kRecordBytesMax = (size_t{1} << 20) + (size_t{64} << 10);
// opaque_auth's body (RFC 5531, 8.2).
inline constexpr size_t kAuthBytesMax = 400;
// Output waiting in one connection before it stops reading calls.
inline constexpr size_t kUnsentBytesMax = size_t{8} << 20;
// Calls of one peer that are being worked on before no further one is read.
inline constexpr size_t kCallsUnansweredMax = 256;
// What a call that waits holds besides its record: the COMPOUND, its arguments, the beginning of its reply.
inline constexpr size_t kCallCost = 4096;
// Our own calls on one connection without an answer; one more fails with EAGAIN.
inline constexpr size_t kCallsOutstandingMax = 4096;
inline constexpr size_t kConnectionsMax = 4096;
// A TCP peer that has not acknowledged anything for this time is gone.
inline constexpr unsigned kPeerPatienceMs = 60'000;
// iovecs of one sendmsg(2): three for each record.
inline constexpr size_t kSendVectorsMax = 96;
// What peers may make a process hold, unless it is configured.
inline constexpr size_t kBudgetBytes = size_t{512} << 20;
// What one connection gets of a turn of the loop before others get theirs: bytes read, messages delivered.
inline constexpr size_t kReadBytesPerTurn = size_t{128} << 10;
inline constexpr size_t kMessagesPerTurn = 8;
// What a connection that ends has not sent is freed in such parts (0.1 ms), which take their turns.
inline constexpr size_t kMessagesFreedAtOnce = 1024;
// Of long records, all connections together: new memory costs the loop more time than the bytes (0.1 ms for 128 KiB).
inline constexpr size_t kLongRecordBytesPerTurn = size_t{32} << 10;
// A TLS session, about; and as long as its handshake lasts, the bytes of which are counted besides.
inline constexpr size_t kTlsSessionCost = size_t{12} << 10;
inline constexpr size_t kTlsHandshakeCost = size_t{32} << 10;
// What the messages of a peer's handshake may be, all together.
inline constexpr size_t kTlsHandshakeBytesMax = size_t{64} << 10;
// How long a peer may take from its probe to the handshake's end; from its connection where TLS is required.
inline constexpr unsigned kTlsPatienceMs = 10'000;
// Ciphertext of one recv(2), or one send(2).
inline constexpr size_t kCiphertextAtOnce = size_t{64} << 10;
// What one connection encrypts in a turn of the loop (1 ms).
inline constexpr size_t kEncryptedPerTurn = size_t{1} << 20;

}  // namespace pnfsrdma::rpc

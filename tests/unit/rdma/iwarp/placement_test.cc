// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "tests/unit/rdma/iwarp/raw_peer.h"

namespace pnfsrdma::rdma::iwarp::testing {
namespace {

uint64_t load(std::byte* at) {
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at)).load(std::memory_order_acquire);
}

// What an atomic write of this transport rests on.
TEST(Placement, EightAlignedBytesArePlacedWholeHoweverTheyArrive) {
  Target target;
  RawPeer peer(target.listener->address());
  peer.handshake(false);
  const RemoteSlice remote = target.region->remote();
  const Bytes payload(8, std::byte{0xEE});
  for (uint32_t cut = 1; cut < 8; ++cut) {
    const uint64_t at = 64 * cut;
    const Bytes frame = seal(tagged(Message::kWrite, true, remote.key, remote.address + at, payload));
    peer.send(ByteSpan(frame).first(kTaggedHeader + cut));
    for (SteadyTime until = soon(Milliseconds(30)); std::chrono::steady_clock::now() < until;) {
      ASSERT_EQ(load(target.memory.data() + at), 0x1111111111111111) << cut << " bytes have arrived";
    }
    peer.send(ByteSpan(frame).subspan(kTaggedHeader + cut));
    peer.send(
        seal(read_request(cut, {.length = 1, .source_stag = remote.key, .source_offset = remote.address})));
    ASSERT_EQ(peer.receive_frame().size(), kTaggedHeader + 1);
    EXPECT_EQ(load(target.memory.data() + at), 0xEEEEEEEEEEEEEEEE);
  }
}

// Nothing is promised of those, and nothing is kept waiting for them.
TEST(Placement, EightMisalignedBytesArriveAsWell) {
  Target target;
  RawPeer peer(target.listener->address());
  peer.handshake(false);
  const RemoteSlice remote = target.region->remote();
  const Bytes payload(8, std::byte{0xEE});
  peer.send(seal(tagged(Message::kWrite, true, remote.key, remote.address + 3, payload)));
  peer.send(
      seal(read_request(1, {.length = 12, .source_stag = remote.key, .source_offset = remote.address})));
  const Bytes answer = peer.receive_frame();
  ASSERT_EQ(answer.size(), kTaggedHeader + 12);
  EXPECT_EQ(to_hex(ByteSpan(answer).subspan(kTaggedHeader)), "111111eeeeeeeeeeeeeeee11");
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp::testing

// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rdma/iwarp/raw_peer.h"

namespace pnfsrdma::rdma::iwarp::testing {
namespace {

TEST(Handshake, FramesSurviveTheWire) {
  MpaFrame frame{.reply = true,
                 .crc = true,
                 .revision = 2,
                 .enhanced = true,
                 .inbound_depth = 12,
                 .outbound_depth = 7,
                 .peer_to_peer = true,
                 .rtr_read = true,
                 .private_data = Bytes(20)};
  Bytes bytes = encode_mpa_frame(frame);
  EXPECT_EQ(as_text(ByteSpan(bytes).first(16)), "MPA ID Rep Frame");
  EXPECT_EQ(to_hex(ByteSpan(bytes).subspan(16, 8)), "50020018800c4007");
  auto header = decode_mpa_header(ByteSpan(bytes).first(kMpaHeader), true);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->length, 24);
  auto decoded = decode_mpa_body(*header, ByteSpan(bytes).subspan(kMpaHeader));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encode_mpa_frame(*decoded), bytes);
}

TEST(Handshake, BadFramesAreRefused) {
  Bytes bytes = encode_mpa_frame({});
  auto header = [](Bytes changed, bool reply = false) {
    return decode_mpa_header(ByteSpan(changed).first(kMpaHeader), reply);
  };
  EXPECT_EQ(header(bytes, true).error(), MpaError::kKey);  // both think they are the initiator
  Bytes revision = bytes;
  for (int bad : {0, 3, 255}) {
    revision[17] = static_cast<std::byte>(bad);
    EXPECT_EQ(header(revision).error(), MpaError::kRevision);
  }
  Bytes length = bytes;
  store_big_endian(length.data() + 18, uint16_t{513});
  EXPECT_EQ(header(length).error(), MpaError::kLength);
  store_big_endian(length.data() + 18, uint16_t{3});
  length[16] = std::byte{0x10};  // enhanced, but no room for the depths
  EXPECT_EQ(header(length).error(), MpaError::kLength);
}

TEST(Handshake, DepthsAreCappedByThePeers) {
  Target target;
  RawPeer peer(target.listener->address());
  MpaFrame reply = peer.handshake(false);
  EXPECT_TRUE(reply.reply);
  EXPECT_TRUE(reply.enhanced);
  EXPECT_EQ(reply.inbound_depth, 4);
  EXPECT_EQ(reply.outbound_depth, 4);
  Prefixed prefix = take_prefix(reply.private_data);
  EXPECT_TRUE(prefix.present);
  EXPECT_TRUE(prefix.native_flush);
  EXPECT_EQ(as_text(prefix.private_data), "hello");
}

TEST(Handshake, APeerThatKnowsNoAtomicWriteIsOfferedNone) {
  for (const bool knows : {false, true}) {
    Target target;
    RawPeer peer(target.listener->address());
    peer.send(encode_mpa_frame(make_request({.native_flush = true, .atomic_write = knows}, 2, false, {})));
    const Prefixed prefix = take_prefix(peer.receive_reply().private_data);
    EXPECT_TRUE(prefix.native_flush);
    EXPECT_EQ(prefix.atomic_write, knows);
    EXPECT_EQ(target.accepted().limits().atomic_write, knows);
  }
}

TEST(Handshake, APeerWithoutOurPrefixGetsNone) {
  Target target;
  RawPeer peer(target.listener->address());
  MpaFrame request{.revision = 1, .private_data = Bytes(3)};
  peer.send(encode_mpa_frame(request));
  MpaFrame reply = peer.receive_reply();
  EXPECT_EQ(reply.revision, 1);
  EXPECT_FALSE(reply.enhanced);
  EXPECT_EQ(as_text(reply.private_data), "hello");
}

TEST(Handshake, PeerToPeerIsAnsweredWithAnEmptyWrite) {
  Target target;
  RawPeer peer(target.listener->address());
  MpaFrame request{.revision = 2,
                   .enhanced = true,
                   .inbound_depth = 4,
                   .outbound_depth = 4,
                   .peer_to_peer = true,
                   .rtr_write = true,
                   .rtr_read = true};
  peer.send(encode_mpa_frame(request));
  MpaFrame reply = peer.receive_reply();
  EXPECT_TRUE(reply.peer_to_peer);
  EXPECT_TRUE(reply.rtr_write);
  EXPECT_FALSE(reply.rtr_read);
  peer.send(seal(tagged(Message::kWrite, true, 1, 0, {})));  // the ready-to-receive frame
  peer.send(seal(read_request(1, {})));
  EXPECT_EQ(peer.receive_frame().size(), kTaggedHeader);
}

TEST(Handshake, MarkersAreRejected) {
  Target target;
  RawPeer peer(target.listener->address());
  peer.send(encode_mpa_frame({.markers = true}));
  EXPECT_TRUE(peer.receive_reply().rejected);
  EXPECT_TRUE(peer.hung_up());
}

TEST(Handshake, AnFpduBehindTheRequestBreaksIt) {
  Target target;
  RawPeer peer(target.listener->address());
  Bytes bytes = encode_mpa_frame({});
  Bytes frame = seal(tagged(Message::kWrite, true, 1, 0, {}));
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  peer.send(bytes);
  EXPECT_TRUE(peer.hung_up());
}

TEST(Handshake, ASilentPeerIsDroppedAndKeepsNobodyWaiting) {
  Target target({.request_timeout = Milliseconds(300)});
  RawPeer silent(target.listener->address()), half(target.listener->address());
  half.send(as_bytes("MPA ID Req"));
  RawPeer quick(target.listener->address());
  EXPECT_TRUE(quick.handshake(false).reply);
  EXPECT_TRUE(silent.hung_up());
  EXPECT_TRUE(half.hung_up());
}

TEST(Handshake, TheAcceptingSideDoesNotSpeakFirst) {
  Target target;
  RawPeer peer(target.listener->address());
  peer.handshake(false);
  QueuePair& queue_pair = target.accepted();
  LocalSlice message = target.region->slice(0, 8);
  ASSERT_TRUE(queue_pair.post_send(9, {&message, 1}));
  queue_pair.submit();
  peer.send(seal(read_request(1, {})));
  // Both come only now: the answer and the message.
  EXPECT_FALSE(peer.receive_frame().empty());
  EXPECT_FALSE(peer.receive_frame().empty());
}

TEST(Handshake, EitherSidesWishTurnsCrcOn) {
  for (auto [policy, asked, expected] :
       {std::tuple(CrcPolicy::kDecline, false, false), std::tuple(CrcPolicy::kDecline, true, true),
        std::tuple(CrcPolicy::kAuto, false, false), std::tuple(CrcPolicy::kRequire, false, true)}) {
    Target target({.crc = policy});
    RawPeer peer(target.listener->address());
    EXPECT_EQ(peer.handshake(asked).crc, expected);
  }
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp::testing

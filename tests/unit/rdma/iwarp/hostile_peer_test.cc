// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "tests/doubles/seeded_random.h"
#include "tests/unit/rdma/iwarp/raw_peer.h"

namespace pnfsrdma::rdma::iwarp::testing {
namespace {

// What a peer may try, and the Terminate it gets.
struct Attack {
  const char* name;
  TerminateCode expected;
  std::function<std::vector<Bytes>(const Target&)> frames;
  bool native_flush = true;
  bool crc = true;
};

uint64_t base(const Target& target) {
  return target.region->remote().address;
}
uint32_t key(const Target& target) {
  return target.region->remote().key;
}
Bytes bytes_of(size_t count) {
  return Bytes(count, std::byte{0xEE});
}
Bytes with_control(Bytes frame, uint8_t first, uint8_t second) {
  frame[2] = static_cast<std::byte>(first);
  frame[3] = static_cast<std::byte>(second);
  return frame;
}
Bytes with_length(Bytes frame, uint16_t length) {
  store_big_endian(frame.data(), length);
  frame.resize(std::max<size_t>(frame.size(), length + kLengthSize));
  return frame;
}

const std::vector<Attack>& attacks() {
  using Frames = std::vector<Bytes>;
  static const std::vector<Attack> list = {
      {"UnknownStag", kTaggedInvalidStag,
       [](auto& t) { return Frames{tagged(Message::kWrite, true, key(t) ^ 1, base(t), bytes_of(8))}; }},
      {"ReadOnlyStag", kTaggedInvalidStag,
       [](auto& t) {
         return Frames{tagged(Message::kWrite, true, t.read_only->remote().key, base(t), bytes_of(8))};
       }},
      {"WriteBelow", kTaggedBounds,
       [](auto& t) { return Frames{tagged(Message::kWrite, true, key(t), base(t) - 1, bytes_of(8))}; }},
      {"WriteBeyond", kTaggedBounds,
       [](auto& t) {
         return Frames{tagged(Message::kWrite, true, key(t), base(t) + (1 << 20) - 7, bytes_of(8))};
       }},
      {"WriteWraps", kTaggedWrap,
       [](auto& t) { return Frames{tagged(Message::kWrite, true, key(t), ~uint64_t{0} - 3, bytes_of(8))}; }},
      {"WriteJumps", kTaggedBounds,
       [](auto& t) {
         return Frames{tagged(Message::kWrite, false, key(t), base(t), {}),
                       tagged(Message::kWrite, true, key(t), base(t) + 1, {})};
       }},
      {"WriteChangesItsStag", kTaggedInvalidStag,
       [](auto& t) {
         return Frames{tagged(Message::kWrite, false, key(t), base(t), {}),
                       tagged(Message::kWrite, true, key(t) ^ 2, base(t), {})};
       }},
      {"UnaskedReadResponse", kUnexpectedOpcode,
       [](auto& t) { return Frames{tagged(Message::kReadResponse, true, key(t), base(t), bytes_of(8))}; }},
      {"UnaskedFlushResponse", kUnexpectedOpcode,
       [](auto&) { return Frames{untagged(Message::kFlushResponse, true, kFlushResponseQueue, 1, 0, {})}; }},
      {"ReadUnknownStag", kReadInvalidStag,
       [](auto& t) {
         return Frames{read_request(1, {.length = 8, .source_stag = key(t) ^ 1, .source_offset = base(t)})};
       }},
      {"ReadBeyond", kReadBounds,
       [](auto& t) {
         return Frames{
             read_request(1, {.length = (1 << 20) + 1, .source_stag = key(t), .source_offset = base(t)})};
       }},
      {"ReadWraps", kReadWrap,
       [](auto& t) {
         return Frames{
             read_request(1, {.length = 8, .source_stag = key(t), .source_offset = ~uint64_t{0} - 2})};
       }},
      {"ReadOfWhatIsNotReadable", kReadAccess,
       [](auto& t) {
         RemoteSlice inbox = t.inbox_region->remote();
         return Frames{
             read_request(1, {.length = 8, .source_stag = inbox.key, .source_offset = inbox.address})};
       }},
      {"ReadOutOfSequence", kUntaggedSequence, [](auto&) { return Frames{read_request(2, {})}; }},
      {"ReadInSegments", kUntaggedOffset,
       [](auto&) {
         Bytes frame = read_request(1, {});
         frame[2] = std::byte{0x01};  // not the last segment
         return Frames{frame};
       }},
      {"ReadOnTheWrongQueue", kUnexpectedOpcode,
       [](auto&) {
         Bytes frame = read_request(1, {});
         store_big_endian(frame.data() + 8, uint32_t{0});
         return Frames{frame};
       }},
      {"ReadTooShort", kFrameLength,
       [](auto&) {
         return Frames{untagged(Message::kReadRequest, true, kRequestQueue, 1, 0, bytes_of(27))};
       }},
      {"ReadTooLong", kUntaggedTooLong,
       [](auto&) {
         return Frames{untagged(Message::kReadRequest, true, kRequestQueue, 1, 0, bytes_of(29))};
       }},
      {"MoreReadsThanTheDepth", kStreamCatastrophic,
       [](auto& t) {
         // All in one burst: not one answer can leave in between.
         Bytes burst;
         for (uint32_t i = 1; i <= 5; ++i) {
           Bytes frame =
               seal(read_request(i, {.length = 1 << 20, .source_stag = key(t), .source_offset = base(t)}));
           burst.insert(burst.end(), frame.begin(), frame.end());
         }
         return Frames{burst};
       }},
      {"FlushUnknownStag", kReadInvalidStag,
       [](auto& t) { return Frames{flush_request(1, {key(t) ^ 1, 8, base(t), kFlushPersistent})}; }},
      {"FlushBeyond", kReadBounds,
       [](auto& t) { return Frames{flush_request(1, {key(t), (1 << 20) + 1, base(t), kFlushPersistent})}; }},
      {"FlushWithoutTheRight", kReadAccess,
       [](auto& t) {
         return Frames{flush_request(1, {t.read_only->remote().key, 8, base(t), kFlushPersistent})};
       }},
      {"FlushWithUnknownFlags", kRemoteOperationFailed,
       [](auto& t) { return Frames{flush_request(1, {key(t), 8, base(t), 4})}; }},
      {"FlushNotAgreedOn", kUnexpectedOpcode,
       [](auto& t) { return Frames{flush_request(1, {key(t), 8, base(t), kFlushPersistent})}; }, false},
      {"SendOutOfSequence", kUntaggedSequence,
       [](auto&) { return Frames{untagged(Message::kSend, true, kSendQueue, 2, 0, {})}; }},
      {"SendStartsInTheMiddle", kUntaggedOffset,
       [](auto&) { return Frames{untagged(Message::kSend, true, kSendQueue, 1, 4, bytes_of(4))}; }},
      {"SendJumps", kUntaggedOffset,
       [](auto&) {
         return Frames{untagged(Message::kSend, false, kSendQueue, 1, 0, bytes_of(4)),
                       untagged(Message::kSend, true, kSendQueue, 1, 5, bytes_of(4))};
       }},
      {"SendTooLong", kUntaggedTooLong,
       [](auto&) { return Frames{untagged(Message::kSend, true, kSendQueue, 1, 0, bytes_of(65))}; }},
      {"SendWithNoBufferLeft", kUntaggedNoBuffer,
       [](auto&) {
         return Frames{untagged(Message::kSend, true, kSendQueue, 1, 0, bytes_of(4)),
                       untagged(Message::kSendSolicited, true, kSendQueue, 2, 0, bytes_of(4))};
       }},
      {"SendInvalidate", kCannotInvalidate,
       [](auto&) { return Frames{untagged(Message::kSendInvalidate, true, kSendQueue, 1, 0, bytes_of(4))}; }},
      {"SendSolicitedInvalidate", kCannotInvalidate,
       [](auto&) { return Frames{untagged(Message::kSendSolicitedInvalidate, true, kSendQueue, 1, 0, {})}; }},
      {"UnknownQueue", kUntaggedQueue,
       [](auto&) { return Frames{untagged(Message::kSend, true, 4, 1, 0, {})}; }},
      {"SendOnTheReadQueue", kUnexpectedOpcode,
       [](auto&) { return Frames{untagged(Message::kSend, true, kRequestQueue, 1, 0, {})}; }},
      {"UnknownOpcode", kUnexpectedOpcode,
       [](auto&) { return Frames{untagged(static_cast<Message>(0xA), true, kRequestQueue, 1, 0, {})}; }},
      {"TaggedSend", kUnexpectedOpcode,
       [](auto& t) { return Frames{tagged(Message::kSend, true, key(t), base(t), bytes_of(8))}; }},
      {"UntaggedWrite", kUnexpectedOpcode,
       [](auto&) { return Frames{untagged(Message::kWrite, true, kSendQueue, 1, 0, bytes_of(8))}; }},
      {"TaggedDdpVersion", kTaggedVersion,
       [](auto& t) {
         return Frames{with_control(tagged(Message::kWrite, true, key(t), base(t), {}), 0xC2, 0x40)};
       }},
      {"UntaggedDdpVersion", kUntaggedVersion,
       [](auto&) {
         return Frames{with_control(untagged(Message::kSend, true, kSendQueue, 1, 0, {}), 0x40, 0x43)};
       }},
      {"RdmapVersion", kRdmapVersionError,
       [](auto&) {
         return Frames{with_control(untagged(Message::kSend, true, kSendQueue, 1, 0, {}), 0x41, 0x83)};
       }},
      {"TaggedUnderflow", kFrameLength,
       [](auto& t) { return Frames{with_length(tagged(Message::kWrite, true, key(t), base(t), {}), 13)}; }},
      {"UntaggedUnderflow", kFrameLength,
       [](auto&) { return Frames{with_length(untagged(Message::kSend, true, kSendQueue, 1, 0, {}), 17)}; }},
      {"LengthZero", kFrameLength,
       [](auto&) { return Frames{with_length(untagged(Message::kSend, true, kSendQueue, 1, 0, {}), 0)}; }},
  };
  return list;
}

class HostilePeer : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(, HostilePeer, ::testing::Range(size_t{0}, attacks().size()),
                         [](const auto& info) { return std::string(attacks()[info.param].name); });

TEST_P(HostilePeer, GetsATerminateAndNothingElse) {
  const Attack& attack = attacks()[GetParam()];
  for (bool crc : {true, false}) {
    Target target;
    RawPeer peer(target.listener->address());
    MpaFrame reply = peer.handshake(crc, attack.native_flush);
    EXPECT_EQ(reply.crc, crc);
    for (const Bytes& frame : attack.frames(target)) {
      bool sealed = std::string_view(attack.name) == "MoreReadsThanTheDepth";
      peer.send(sealed ? frame : seal(frame));
    }
    Bytes terminate = peer.receive_frame();
    ASSERT_GE(terminate.size(), kUntaggedHeader + 4) << "hung up without a Terminate, crc " << crc;
    Segment segment = decode_segment(terminate.data());
    EXPECT_EQ(segment.message, Message::kTerminate);
    EXPECT_EQ(segment.queue, kTerminateQueue);
    EXPECT_EQ(segment.sequence, 1u);
    TerminateCode code = decode_terminate(ByteSpan(terminate).subspan(kUntaggedHeader)).code;
    EXPECT_TRUE(code == attack.expected)
        << int(code.layer) << "/" << int(code.type) << "/" << int(code.code) << " crc " << crc;
    EXPECT_TRUE(peer.hung_up());
    EXPECT_TRUE(std::ranges::equal(target.memory, Bytes(1 << 20, std::byte{0x11})));
  }
}

TEST(HostileStream, ABadCrcEndsIt) {
  Target target;
  RawPeer peer(target.listener->address());
  peer.handshake(true);
  peer.send(seal(tagged(Message::kWrite, true, key(target), base(target), bytes_of(8)), 1));
  Bytes terminate = peer.receive_frame();
  ASSERT_GE(terminate.size(), kUntaggedHeader + 4);
  EXPECT_TRUE(decode_terminate(ByteSpan(terminate).subspan(kUntaggedHeader)).code == kCrcError);
  EXPECT_TRUE(peer.hung_up());
  EXPECT_EQ(target.memory[0], std::byte{0x11});
}

TEST(HostileStream, AnyCrcIsTakenWhenItIsOff) {
  Target target;
  RawPeer peer(target.listener->address());
  peer.handshake(false);
  peer.send(seal(tagged(Message::kWrite, true, key(target), base(target), bytes_of(9)), 1));
  peer.send(seal(read_request(1, {.sink_stag = 77,
                                  .sink_offset = 5,
                                  .length = 9,
                                  .source_stag = key(target),
                                  .source_offset = base(target)})));
  Bytes response = peer.receive_frame();
  ASSERT_EQ(response.size(), kTaggedHeader + 9);
  EXPECT_EQ(decode_segment(response.data()).stag, 77u);
  EXPECT_EQ(decode_segment(response.data()).offset, 5u);
  EXPECT_EQ(target.memory[8], std::byte{0xEE});
}

TEST(HostileStream, FramesMayArriveByteByByte) {
  for (bool crc : {true, false}) {
    Target target;
    RawPeer peer(target.listener->address());
    peer.handshake(crc);
    Bytes frame = seal(tagged(Message::kWrite, true, key(target), base(target), bytes_of(50)));
    Bytes read =
        seal(read_request(1, {.length = 1, .source_stag = key(target), .source_offset = base(target)}));
    frame.insert(frame.end(), read.begin(), read.end());
    for (std::byte byte : frame) peer.send({&byte, 1});
    EXPECT_EQ(peer.receive_frame().size(), kTaggedHeader + 1);
    EXPECT_EQ(target.memory[49], std::byte{0xEE});
    EXPECT_EQ(target.memory[50], std::byte{0x11});
  }
}

TEST(HostileStream, ATerminateFromThePeerEndsItQuietly) {
  Target target;
  RawPeer peer(target.listener->address());
  peer.handshake(false);
  peer.send(seal(untagged(Message::kTerminate, true, kTerminateQueue, 1, 0, bytes_of(4))));
  EXPECT_TRUE(peer.hung_up());
}

TEST(HostileStream, AMillionRandomBytesDoNoHarm) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Target target;
    RawPeer peer(target.listener->address());
    peer.handshake(seed % 2 == 0);
    Bytes noise(50000);
    SeededRandom(seed).fill(noise);
    peer.send(noise);
    peer.receive(1000);
    EXPECT_TRUE(std::ranges::equal(target.memory, Bytes(1 << 20, std::byte{0x11})));
  }
}

}  // namespace
}  // namespace pnfsrdma::rdma::iwarp::testing

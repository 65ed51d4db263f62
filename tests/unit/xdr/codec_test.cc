// SPDX-License-Identifier: Apache-2.0
#include "shared/xdr/codec.h"

#include <gtest/gtest.h>

#include <random>

#include "shared/brick/protocol.h"
#include "shared/brick/session_messages.h"
#include "shared/nfs4/pmem_layout.h"
#include "tests/doubles/seeded_random.h"
#include "tests/values/equal.h"
#include "tests/values/print.h"
#include "tests/values/random_value.h"

namespace pnfsrdma::xdr {
namespace {

enum class Colour : uint32_t { kRed = 1, kBlue = 2, kGreen = 7 };
constexpr bool xdr_known(Colour colour) {
  return colour == Colour::kRed || colour == Colour::kBlue || colour == Colour::kGreen;
}

struct Inner {
  int32_t number = 0;
  std::optional<uint64_t> wide;
};

struct Everything {
  uint32_t u32 = 0;
  int64_t i64 = 0;
  bool flag = false;
  Colour colour = Colour::kRed;
  FixedOpaque<5> fixed{};
  Opaque<7> opaque;
  String<6> text;
  List<Inner, 3> list;
  Chain<uint32_t> chain;
  Union<Colour, Arm<Void, Colour::kRed>, Arm<Inner, Colour::kBlue, Colour::kGreen>> choice;
  std::optional<Inner> maybe;
  Payload<9> payload;
};
static_assert(kFieldCount<Everything> == 12);
static_assert(kFieldCount<Void> == 0);

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

template <typename T>
DecodeError error_of(std::initializer_list<unsigned> values) {
  const Bytes bytes = bytes_of(values);
  const auto decoded = decode_from<T>(bytes);
  return decoded ? DecodeError::kNone : decoded.error();
}

template <typename T>
void expect_round_trips(uint64_t seed) {
  SeededRandom random(seed);
  for (int i = 0; i < 300; ++i) {
    const T value = random_value<T>(random);
    const Bytes bytes = encode_to_bytes(value);
    EXPECT_EQ(bytes.size() % 4, 0u);
    EXPECT_EQ(bytes.size(), encoded_size(value));
    const auto decoded = decode_from<T>(bytes);
    ASSERT_TRUE(decoded.has_value()) << to_text(value) << ": " << to_string(decoded.error());
    EXPECT_TRUE(equal(*decoded, value)) << to_text(value) << " became " << to_text(*decoded);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(decode_from<T>(ByteSpan(bytes).first(size)).has_value());
    }
  }
}

TEST(Codec, EveryKindOfTypeComesBackAsItWent) {
  expect_round_trips<Everything>(1);
}

TEST(Codec, OurOwnProtocolsComeBackAsTheyWent) {
  expect_round_trips<brick::ClaimResult>(2);
  expect_round_trips<brick::SessionsResult>(3);
  expect_round_trips<brick::GrantsResult>(4);
  expect_round_trips<brick::ListResult>(5);
  expect_round_trips<brick::StatisticsResult>(6);
  expect_round_trips<brick::HelloReply>(7);
  expect_round_trips<brick::PersistCall>(8);
  expect_round_trips<nfs4::DeviceAddress>(9);
  expect_round_trips<nfs4::LayoutBody>(10);
  expect_round_trips<nfs4::LayoutUpdate>(11);
}

TEST(Codec, BytesAreThoseOfTheRfc) {
  Everything value;
  value.u32 = 0x01020304;
  value.i64 = -2;
  value.flag = true;
  value.colour = Colour::kGreen;
  value.fixed.fill(std::byte{0xee});
  value.opaque = Opaque<7>(bytes_of({1, 2}));
  value.text = "abc";
  value.list.push_back({-1, 5});
  value.chain.push_back(9);
  value.choice = decltype(value.choice)::make<Colour::kBlue>({3, {}});
  const Bytes expected = bytes_of({
      1,    2,    3,    4,                                         // u32
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,              // i64
      0,    0,    0,    1,                                         // flag
      0,    0,    0,    7,                                         // colour
      0xee, 0xee, 0xee, 0xee, 0xee, 0,    0,    0,                 // fixed, padded
      0,    0,    0,    2,    1,    2,    0,    0,                 // opaque
      0,    0,    0,    3,    'a',  'b',  'c',  0,                 // text
      0,    0,    0,    1,    0xff, 0xff, 0xff, 0xff,              // list of one: number
      0,    0,    0,    1,    0,    0,    0,    0,    0, 0, 0, 5,  // its optional
      0,    0,    0,    1,    0,    0,    0,    9,    0, 0, 0, 0,  // chain
      0,    0,    0,    2,    0,    0,    0,    3,    0, 0, 0, 0,  // union, arm of two fields
      0,    0,    0,    0,                                         // absent
      0,    0,    0,    0,                                         // payload
  });
  EXPECT_EQ(to_hex(encode_to_bytes(value)), to_hex(expected));
}

TEST(Codec, MalformedInputIsRefusedWithItsReason) {
  EXPECT_EQ(error_of<uint32_t>({0, 0, 0}), DecodeError::kTruncated);
  EXPECT_EQ(error_of<uint32_t>({0, 0, 0, 1, 0}), DecodeError::kTrailing);
  EXPECT_EQ(error_of<bool>({0, 0, 0, 2}), DecodeError::kBool);
  EXPECT_EQ(error_of<bool>({1, 0, 0, 0}), DecodeError::kBool);
  EXPECT_EQ(error_of<Colour>({0, 0, 0, 3}), DecodeError::kEnumerator);
  EXPECT_EQ(error_of<Opaque<3>>({0, 0, 0, 4, 1, 2, 3, 4}), DecodeError::kBound);
  EXPECT_EQ(error_of<Opaque<3>>({0, 0, 0, 3, 1, 2, 3, 1}), DecodeError::kPadding);
  EXPECT_EQ(error_of<Opaque<>>({0, 0, 0, 3, 1, 2, 3}), DecodeError::kTruncated);
  EXPECT_EQ(error_of<String<>>({0xff, 0xff, 0xff, 0xff}), DecodeError::kTruncated);
  EXPECT_EQ(error_of<FixedOpaque<2>>({1, 2, 0, 1}), DecodeError::kPadding);
  EXPECT_EQ((error_of<List<uint32_t, 1>>({0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1})), DecodeError::kBound);
  EXPECT_EQ(error_of<List<uint32_t>>({0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}), DecodeError::kTruncated);
  EXPECT_EQ(error_of<Chain<uint32_t>>({0, 0, 0, 1, 0, 0, 0, 1}), DecodeError::kTruncated);
  EXPECT_EQ(error_of<std::optional<uint32_t>>({0, 0, 0, 2}), DecodeError::kBool);
  using Partial = Union<uint32_t, Arm<Void, 1u>>;
  EXPECT_EQ(error_of<Partial>({0, 0, 0, 2}), DecodeError::kDiscriminant);
  EXPECT_EQ(error_of<Partial>({0, 0, 0, 1}), DecodeError::kNone);
}

TEST(Codec, NestingIsBounded) {
  Bytes zeros(4096);
  Decoder decoder(zeros);
  unsigned entered = 0;
  while (decoder.enter()) ++entered;
  EXPECT_EQ(entered, kDepthMax);
  EXPECT_EQ(decoder.error(), DecodeError::kDepth);
}

TEST(Codec, AHugeCountInAShortRecordCostsNoMemory) {
  // Each wire item may be as small as four bytes, in memory it is larger: growth follows what has been
  // decoded.
  Bytes bytes;
  Encoder encoder(bytes);
  encoder.put_u32(1000);
  for (int i = 0; i < 999; ++i) encoder.put_u32(0);
  EXPECT_FALSE((decode_from<List<String<>>>(bytes).has_value()));
}

TEST(Payload, DecodesToAViewIntoTheRecord) {
  const Bytes record = encode_to_bytes(Payload<>(bytes_of({1, 2, 3, 4, 5})));
  const auto decoded = decode_from<Payload<>>(record);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->span().data(), record.data() + 4);
  EXPECT_EQ(decoded->size(), 5u);
}

TEST(Payload, KeepsItsOwnBytesWhenMoved) {
  Payload<> first(bytes_of({1, 2, 3}));
  const Payload<> second = std::move(first);
  EXPECT_EQ(to_hex(second.span()), "010203");
}

TEST(Encoder, ReservedRoomIsFilledInPlace) {
  Bytes record;
  Encoder encoder(record);
  const MutableByteSpan room = encoder.reserve_opaque(5);
  std::fill(room.begin(), room.end(), std::byte{7});
  EXPECT_EQ(to_hex(record), "000000050707070707000000");
}

TEST(Encoder, LateNumbersArePatchedAndTheEndTakenBack) {
  Bytes record;
  Encoder encoder(record);
  encoder.put_u32(0);
  encoder.put_u32(5);
  encoder.patch_u32(0, 0xabcd);
  encoder.truncate(4);
  EXPECT_EQ(to_hex(record), "0000abcd");
}

// The same puts, patches and truncations with and without Stagings, of one inside another, too.
TEST(Encoder, WhatIsStagedIsWhatIsWritten) {
  const auto write = [](Encoder& encoder, uint32_t seed, bool stage) {
    std::mt19937 random(seed);
    const auto below = [&random](size_t bound) { return random() % bound; };
    std::vector<size_t> numbers;
    const size_t puts = below(300);
    std::optional<Encoder::Staging> outer;
    std::optional<Encoder::Staging> inner;
    for (size_t put = 0; put < puts; ++put) {
      const size_t turn = below(40);
      if (stage && turn == 0) outer.emplace(encoder);
      if (stage && turn == 1) inner.emplace(encoder);
      if (stage && turn == 2) inner.reset();
      if (stage && turn == 3 && !inner) outer.reset();
      const Bytes bytes(below(below(10) == 0 ? 700 : 40), static_cast<std::byte>(below(256)));
      switch (below(6)) {
        case 0:
          numbers.push_back(encoder.position());
          encoder.put_u32(static_cast<uint32_t>(put));
          break;
        case 1:
          encoder.put_u64(put);
          break;
        case 2:
          encoder.put_opaque(bytes);
          break;
        case 3:
          encoder.put_fixed(bytes);
          break;
        case 4:
          if (!numbers.empty()) encoder.patch_u32(numbers[below(numbers.size())], 77);
          break;
        default:
          std::ranges::copy(bytes, encoder.reserve_opaque(bytes.size()).begin());
          break;
      }
      if (below(20) == 0 && !numbers.empty()) {
        encoder.truncate(numbers.back());
        numbers.pop_back();
      }
    }
    inner.reset();
    outer.reset();
    return encoder.position();
  };
  for (uint32_t seed = 0; seed < 2'000; ++seed) {
    Bytes plain{std::byte{1}};
    Bytes staged{std::byte{1}};
    Encoder one(plain);
    Encoder other(staged);
    EXPECT_EQ(write(one, seed, false), write(other, seed, true)) << seed;
    ASSERT_EQ(plain, staged) << seed;
  }
}

TEST(Encoder, ACounterCountsWhatIsPatchedLater) {
  const auto write = [](Encoder& encoder) {
    encoder.put_u32(0);
    encoder.put_opaque(as_bytes("abcde"));
    encoder.patch_u32(0, 7);
  };
  Bytes bytes;
  Encoder writer(bytes);
  write(writer);
  Encoder counter = Encoder::counter();
  write(counter);
  EXPECT_EQ(counter.position(), bytes.size());
}

TEST(Union, StartsAsItsFirstArmAndGivesOnlyTheArmThatIsThere) {
  Union<Colour, Arm<Void, Colour::kRed>, Arm<uint32_t, Colour::kBlue>, Default<bool>> choice;
  EXPECT_TRUE(choice.is<Colour::kRed>());
  EXPECT_EQ(choice.get_if<Colour::kBlue>(), nullptr);
  choice = decltype(choice)::make<Colour::kBlue>(4);
  ASSERT_NE(choice.get_if<Colour::kBlue>(), nullptr);
  EXPECT_EQ(*choice.get_if<Colour::kBlue>(), 4u);
  choice.select(Colour::kGreen);
  EXPECT_NE(choice.get_if<Colour::kGreen>(), nullptr);
}

TEST(Print, ShowsTheValueOnOneLine) {
  brick::ExposeResult result;
  result.connection = 2;
  result.grants.push_back({1, 2, 3, true, 4, 5});
  EXPECT_EQ(to_text(result), "{0, 2, [{1, 2, 3, true, 4, 5}]}");
  EXPECT_EQ(to_text(String<>("a\n\"")), "\"a\\x0a\\x22\"");
}

}  // namespace
}  // namespace pnfsrdma::xdr

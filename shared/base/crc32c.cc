// SPDX-License-Identifier: Apache-2.0
#include "shared/base/crc32c.h"

#include <array>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace pnfsrdma {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41, bits reversed

using ByteTable = std::array<uint32_t, 256>;

// slices[k][b]: what byte b contributes when k more bytes follow it in the same step of eight.
constexpr std::array<ByteTable, 8> make_slices() {
  std::array<ByteTable, 8> slices{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    slices[0][byte] = crc;
  }
  for (size_t slice = 1; slice < 8; ++slice) {
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = slices[slice - 1][byte];
      slices[slice][byte] = (crc >> 8) ^ slices[0][crc & 0xff];
    }
  }
  return slices;
}
constexpr std::array<ByteTable, 8> kSlices = make_slices();

uint64_t load_little_endian(const std::byte* from) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = (value << 8) | std::to_integer<uint64_t>(from[i]);
  return value;
}

uint32_t update_by_table(uint32_t state, const std::byte* at, size_t count) {
  for (; count >= 8; at += 8, count -= 8) {
    uint64_t word = load_little_endian(at) ^ state;
    state = 0;
    for (size_t i = 0; i < 8; ++i) state ^= kSlices[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; count > 0; ++at, --count) {
    state = (state >> 8) ^ kSlices[0][(state ^ std::to_integer<uint32_t>(*at)) & 0xff];
  }
  return state;
}

#if defined(__x86_64__)

// The operator "a block of Length zero bytes follows", as four byte tables. It is linear over the state's
// bits, so three streams can be computed at once and joined: the instruction's latency is three cycles, its
// throughput one.
template <size_t Length>
struct Shift {
  std::array<ByteTable, 4> tables{};

  constexpr Shift() {
    std::array<uint32_t, 32> columns{};
    for (uint32_t bit = 0; bit < 32; ++bit) {
      uint32_t state = 1u << bit;
      // One zero byte moves the state through slice 0; Length is small enough to do it literally for 32
      // columns only by squaring: columns hold "one byte" first and are doubled below.
      state = (state >> 8) ^ kSlices[0][state & 0xff];
      columns[bit] = state;
    }
    for (size_t length = 1; length < Length; length *= 2) {
      std::array<uint32_t, 32> doubled{};
      for (uint32_t bit = 0; bit < 32; ++bit) doubled[bit] = apply_columns(columns, columns[bit]);
      columns = doubled;
    }
    for (uint32_t table = 0; table < 4; ++table) {
      for (uint32_t byte = 0; byte < 256; ++byte) {
        tables[table][byte] = apply_columns(columns, byte << (8 * table));
      }
    }
  }
  static constexpr uint32_t apply_columns(const std::array<uint32_t, 32>& columns, uint32_t state) {
    uint32_t result = 0;
    for (uint32_t bit = 0; bit < 32; ++bit) {
      if ((state >> bit & 1) != 0) result ^= columns[bit];
    }
    return result;
  }
  uint32_t operator()(uint32_t state) const {
    return tables[0][state & 0xff] ^ tables[1][state >> 8 & 0xff] ^ tables[2][state >> 16 & 0xff] ^
           tables[3][state >> 24];
  }
};
constexpr size_t kLongBlock = 2048;
constexpr size_t kShortBlock = 128;
const Shift<kLongBlock> kLongShift;
const Shift<kShortBlock> kShortShift;

uint64_t load_word(const std::byte* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Three blocks of Length bytes side by side.
template <size_t Length>
__attribute__((target("sse4.2"))) uint32_t update_three(uint32_t state, const std::byte* at,
                                                        const Shift<Length>& shift) {
  uint64_t first = state, second = 0, third = 0;
  for (size_t i = 0; i < Length; i += 8) {
    first = _mm_crc32_u64(first, load_word(at + i));
    second = _mm_crc32_u64(second, load_word(at + Length + i));
    third = _mm_crc32_u64(third, load_word(at + 2 * Length + i));
  }
  state = shift(static_cast<uint32_t>(first)) ^ static_cast<uint32_t>(second);
  return shift(state) ^ static_cast<uint32_t>(third);
}

__attribute__((target("sse4.2"))) uint32_t update_by_instruction(uint32_t state, const std::byte* at,
                                                                 size_t count) {
  for (; count >= 3 * kLongBlock; at += 3 * kLongBlock, count -= 3 * kLongBlock) {
    state = update_three<kLongBlock>(state, at, kLongShift);
  }
  for (; count >= 3 * kShortBlock; at += 3 * kShortBlock, count -= 3 * kShortBlock) {
    state = update_three<kShortBlock>(state, at, kShortShift);
  }
  uint64_t wide = state;
  for (; count >= 8; at += 8, count -= 8) wide = _mm_crc32_u64(wide, load_word(at));
  state = static_cast<uint32_t>(wide);
  for (; count > 0; ++at, --count) state = _mm_crc32_u8(state, std::to_integer<uint8_t>(*at));
  return state;
}

#endif

using Update = uint32_t (*)(uint32_t, const std::byte*, size_t);

Update choose_update() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return update_by_instruction;
#endif
  return update_by_table;
}

}  // namespace

uint32_t crc32c(ByteSpan bytes, uint32_t before) {
  static const Update update = choose_update();
  return ~update(~before, bytes.data(), bytes.size());
}

uint32_t crc32c_by_table(ByteSpan bytes, uint32_t before) {
  return ~update_by_table(~before, bytes.data(), bytes.size());
}

// What `size` zero bytes do to a sum is a linear map of its 32 bits: squared for each bit of the size.
uint32_t crc32c_joined(uint32_t front, uint32_t back, uint64_t back_size) {
  using Matrix = std::array<uint32_t, 32>;  // a column for each bit
  const auto times = [](const Matrix& matrix, uint32_t vector) {
    uint32_t sum = 0;
    for (size_t bit = 0; vector != 0; ++bit, vector >>= 1) {
      if ((vector & 1) != 0) sum ^= matrix[bit];
    }
    return sum;
  };
  Matrix shift{};  // by one bit, then by a byte, then by 2, 4, 8 bytes, ...
  shift[0] = kPolynomial;
  for (size_t bit = 1; bit < shift.size(); ++bit) shift[bit] = uint32_t{1} << (bit - 1);
  const auto square = [&] {
    Matrix squared{};
    for (size_t bit = 0; bit < shift.size(); ++bit) squared[bit] = times(shift, shift[bit]);
    shift = squared;
  };
  for (int i = 0; i < 3; ++i) square();
  for (; back_size != 0; back_size >>= 1) {
    if ((back_size & 1) != 0) front = times(shift, front);
    square();
  }
  return front ^ back;
}

}  // namespace pnfsrdma

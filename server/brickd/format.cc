// SPDX-License-Identifier: Apache-2.0
#include "server/brickd/format.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cstring>

namespace pnfsrdma::brick::format {
namespace {

// A bijection of 64 bits in which every input bit moves every output bit (multiply and shift, constants of
// splitmix).
constexpr uint64_t mix(uint64_t value) {
  value ^= value >> 30;
  value *= 0xBF58476D1CE4E5B9;
  value ^= value >> 27;
  value *= 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

std::array<std::byte, 8> front_of_digest(const void* bytes, size_t size) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(static_cast<const unsigned char*>(bytes), size, digest.data());
  std::array<std::byte, 8> front;
  std::memcpy(front.data(), digest.data(), front.size());
  return front;
}

}  // namespace

uint32_t record_checksum(const Record& record, uint64_t block, const std::array<std::byte, 16>& uuid) {
  uint64_t pool = 0;
  std::memcpy(&pool, uuid.data(), sizeof pool);
  uint64_t sum = mix(pool ^ mix(block + 1));
  for (const uint64_t word : {record.logical, record.owner, record.generation, uint64_t{record.state}}) {
    sum = mix(sum + word + 0x9E3779B97F4A7C15);
  }
  return static_cast<uint32_t>(sum >> 32);
}

std::array<std::byte, 8> superblock_checksum(const Superblock& superblock) {
  return front_of_digest(&superblock, offsetof(Superblock, checksum));
}

std::array<std::byte, 8> label_checksum(const Label& label) {
  return front_of_digest(&label, offsetof(Label, checksum));
}

}  // namespace pnfsrdma::brick::format

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pnfsrdma::ring {

// Of all that the two say to each other; another one is refused.
inline constexpr uint32_t kVersion = 1;

enum class Opcode : uint32_t { kRead = 0, kWrite = 1 };

// Submission::flags: a write is durable when it completes.
inline constexpr uint32_t kDurable = 1;

// One operation, as the program writes it into the submission ring: `length` bytes of a file from `offset`, to or
// from `memory_offset` of a memory that was added.
struct Submission {
  uint32_t opcode = 0;
  uint32_t flags = 0;
  uint32_t file = 0;    // Attach::file
  uint32_t memory = 0;  // Answer::number of kAddMemory
  uint64_t memory_offset = 0;
  uint64_t length = 0;
  uint64_t offset = 0;
  uint64_t user_data = 0;  // comes back with the completion
};
static_assert(sizeof(Submission) == 48);

// What became of it. `result`: bytes (a read is short only at the end of the file), a negative errno, or
// kUseDescriptor.
struct Completion {
  uint64_t user_data = 0;
  int64_t result = 0;
};
static_assert(sizeof(Completion) == 16);

// The mount would have to wait, or to ask the server: the program does the same operation through its descriptor. A
// write may have been done in part, by then or later until it is done there.
inline constexpr int64_t kUseDescriptor = INT64_MIN;

// The most that one operation moves, in bytes.
inline constexpr uint64_t kLengthMax = uint64_t{8} << 20;

}  // namespace pnfsrdma::ring

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/ioctl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "shared/ring/entries.h"

// All integers in the host's byte order: both sides are on one host. Texts end with a null byte.
namespace pnfsrdma::ring {

using Secret = std::array<uint8_t, 16>;

// --- on the socket (SOCK_SEQPACKET): a Request, then its Answer, one after the other

enum class RequestKind : uint32_t {
  kHello = 1,  // value: the wanted depth; the mount's token. Answer: its depth, the secret; kHelloDescriptors
  kAddMemory = 2,     // with a memfd of ordinary pages of which F_SEAL_SHRINK is set. Answer: its number
  kRemoveMemory = 3,  // value: its number
  kAddChannel = 4,    // with a connected socket (AF_UNIX, SOCK_SEQPACKET), for one kWatch. Answer: its number
};

struct Request {
  uint32_t version = kVersion;
  uint32_t kind = 0;
  uint64_t value = 0;
  Secret token{};
};

// What a kHello is answered with: the rings' memory, the mount's doorbell, the program's doorbell (eventfd(2)).
inline constexpr size_t kHelloDescriptors = 3;

struct Answer {
  int32_t error = 0;  // 0 or an errno, and then `text`
  uint32_t number = 0;
  Secret secret{};
  std::array<char, 128> text{};
};

// --- by ioctl(2)

// On any open file or directory of the mount. The token shows at the socket, which anybody on the host can reach, that
// its bearer may use the mount.
struct Find {
  uint32_t version = kVersion;
  Secret token{};
  std::array<char, 60> socket{};  // abstract: without the null byte in front
  std::array<char, 32> transport{};
  std::array<char, 16> durability{};
};

// On an open regular file: it is known to the program of that secret as `file`, and what the descriptor may do may be
// done by the ring, until it is closed. Errors: EPERM (the secret is nobody's), ENFILE.
struct Attach {
  uint32_t version = kVersion;
  uint32_t file = 0;  // out
  Secret secret{};
};

// On an open regular file that may be written: appends from a memory of the program of that secret, whole or not at
// all up to 1 MiB (longer is EINVAL), and tells where. Errors: as write(2).
struct Append {
  uint32_t version = kVersion;
  uint32_t flags = 0;  // kDurable
  Secret secret{};
  uint32_t memory = 0;
  uint32_t unused = 0;
  uint64_t memory_offset = 0;
  uint64_t length = 0;
  uint64_t offset = 0;  // out
};

enum class WordChange : uint32_t { kStore = 1, kCompareAndSwap = 2, kFetchAndAdd = 3 };

// On an open regular file that may be read and written (for a store: written): its brick changes an aligned word of
// eight bytes, as a whole. Errors: EINVAL; EBADF; ENOTSUP, EAGAIN (nothing was changed); EIO (whether it was, or is
// durable, is not known).
struct ChangeWord {
  uint32_t version = kVersion;
  uint32_t flags = 0;   // kDurable
  uint32_t change = 0;  // WordChange
  uint32_t unused = 0;
  uint64_t offset = 0;
  uint64_t operand = 0;
  uint64_t expected = 0;
  uint64_t before = 0;  // out: what it was
};

// On an open regular file that may be read: everything that was written is made durable, and the brick reads
// these ranges back. Errors: EINVAL (too many, too much, behind the end); as of kChangeWord, and as fdatasync(2).
inline constexpr uint32_t kVerifyRangesMax = 64;
inline constexpr uint64_t kVerifyBytesMax = uint64_t{64} << 20;  // of all of them
struct Verify {
  struct Range {
    uint64_t offset = 0;
    uint64_t length = 0;
  };
  uint32_t version = kVersion;
  uint32_t count = 0;
  uint32_t medium = 0;  // out: 1; 0: some of it from a copy in front of that
  uint32_t unused = 0;
  std::array<Range, kVerifyRangesMax> ranges{};
  std::array<uint32_t, kVerifyRangesMax> checksums{};  // out: CRC32C
};

// On an open regular file that may be read: from here on the mount sends an Event to the channel for whatever is
// signalled in the range, until the program closes its end of that, or the descriptor. Errors: EINVAL (the file ends
// before that), EBADF, EPERM (no such channel of a program of that secret), ENOSPC (too many), ENOTSUP, EAGAIN.
struct Watch {
  uint32_t version = kVersion;
  uint32_t channel = 0;
  Secret secret{};
  uint64_t offset = 0;
  uint64_t length = 0;
};
enum class EventKind : uint32_t { kSignal = 0, kGapSlow = 1, kGapLost = 2 };
// A message on a channel. `offset` is in the file; of a gap all is 0.
struct Event {
  uint32_t kind = 0;  // EventKind
  uint32_t unused = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t value = 0;
};

// On an open regular file that may be written: the range is made durable, and those who watch it are told. Errors: as
// fdatasync(2), EINVAL, EBADF, ENOTSUP, EAGAIN.
struct Signal {
  uint32_t version = kVersion;
  uint32_t unused = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t value = 0;
};

// On an open regular file that may be read: who shows the secret to kClone, once, within 10 s and while the file is
// open, clones it. What the kernel has not written back (shared mappings) is not there: msync(2) or sync_file_range(2)
// first. Errors: ENOTSUP (the kernel keeps all that is written), ENOSPC (too many).
struct OfferClone {
  uint32_t version = kVersion;
  uint32_t unused = 0;
  Secret secret{};  // out
};

// On an open regular file of the same mount that may be written (but not opened to append): it has what the offered
// one has, in the same memory, from the beginning to the end of that; all or nothing. Pages of it that are mapped and
// changed are to be written back before. Errors: EPERM (the secret is nobody's, or too old), EBADF, EINVAL (it has
// other bytes in the last page), EFBIG (too many pieces), EXDEV (its brick is being drained), ENOTSUP; as write(2).
struct Clone {
  uint32_t version = kVersion;
  uint32_t unused = 0;
  Secret secret{};
};

// What came with a call; none: of another version.
template <typename Argument>
std::optional<Argument> argument_of(std::span<const std::byte> in) {
  if (in.size() != sizeof(Argument)) return std::nullopt;
  Argument argument;
  std::memcpy(&argument, in.data(), sizeof argument);
  if (argument.version != kVersion) return std::nullopt;
  return argument;
}

inline constexpr unsigned kFind = _IOR('P', 0x52, Find);
inline constexpr unsigned kAttach = _IOWR('P', 0x53, Attach);
inline constexpr unsigned kAppend = _IOWR('P', 0x54, Append);
inline constexpr unsigned kChangeWord = _IOWR('P', 0x55, ChangeWord);  // ENOTTY: a mount of before
inline constexpr unsigned kVerify = _IOWR('P', 0x56, Verify);          // as well
inline constexpr unsigned kWatch = _IOWR('P', 0x57, Watch);            // as well
inline constexpr unsigned kSignal = _IOWR('P', 0x58, Signal);          // as well
inline constexpr unsigned kOfferClone = _IOWR('P', 0x59, OfferClone);  // as well
inline constexpr unsigned kClone = _IOWR('P', 0x5A, Clone);            // as well

}  // namespace pnfsrdma::ring

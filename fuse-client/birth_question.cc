// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/birth_question.h"

#include <linux/fuse.h>
#include <linux/stat.h>

#include <cstring>

namespace pnfsrdma::fuse_client {
namespace {

// Of Linux 6.6 and later; older headers do not have it.
constexpr uint32_t kStatx = 52;  // FUSE_STATX
static_assert(sizeof(fuse_getattr_in) == 16);

// fuse_statx_out: fuse_statx is laid out as statx(2)'s buffer.
struct StatxAnswer {
  fuse_out_header header;
  uint64_t attr_valid;
  uint32_t attr_valid_nsec;
  uint32_t flags;
  uint64_t spare[2];
  struct statx stat;
};
static_assert(sizeof(struct statx) == 256 && sizeof(StatxAnswer) == sizeof(fuse_out_header) + 32 + 256);

thread_local BirthQuestion* asked = nullptr;

statx_timestamp time_of(uint64_t seconds, uint32_t nanoseconds) {
  return {.tv_sec = static_cast<int64_t>(seconds), .tv_nsec = nanoseconds, .__reserved = 0};
}

// The low 8 bits of a minor number are the lowest ones, its others are above the major number's (new_encode_dev() of
// Linux).
uint32_t major_of(uint32_t device) {
  return (device & 0xfff00) >> 8;
}
uint32_t minor_of(uint32_t device) {
  return (device & 0xff) | ((device >> 12) & 0xfff00);
}

void fill(struct statx& to, const fuse_attr& from) {
  to.stx_mask = STATX_BASIC_STATS;
  to.stx_blksize = from.blksize;
  to.stx_nlink = from.nlink;
  to.stx_uid = from.uid;
  to.stx_gid = from.gid;
  to.stx_mode = static_cast<uint16_t>(from.mode);
  to.stx_ino = from.ino;
  to.stx_size = from.size;
  to.stx_blocks = from.blocks;
  to.stx_atime = time_of(from.atime, from.atimensec);
  to.stx_mtime = time_of(from.mtime, from.mtimensec);
  to.stx_ctime = time_of(from.ctime, from.ctimensec);
  to.stx_rdev_major = major_of(from.rdev);
  to.stx_rdev_minor = minor_of(from.rdev);
}

}  // namespace

BirthQuestion::BirthQuestion(std::span<std::byte> message) {
  fuse_in_header header{};
  if (message.size() < sizeof header + sizeof(fuse_getattr_in)) return;
  std::memcpy(&header, message.data(), sizeof header);
  if (header.opcode != kStatx) return;
  header.opcode = FUSE_GETATTR;
  std::memcpy(message.data(), &header, sizeof header);
  unique_ = header.unique;
  asked = this;
}

BirthQuestion::~BirthQuestion() {
  if (asked == this) asked = nullptr;
}

BirthQuestion* BirthQuestion::current() {
  return asked;
}

std::optional<Bytes> BirthQuestion::answer_from(std::span<const iovec> answer) const {
  fuse_attr_out attributes{};
  StatxAnswer made{};
  if (answer.size() != 2 || answer[0].iov_len != sizeof made.header || answer[1].iov_len != sizeof attributes)
    return std::nullopt;
  std::memcpy(&made.header, answer[0].iov_base, sizeof made.header);
  if (made.header.error != 0 || made.header.unique != unique_) return std::nullopt;
  std::memcpy(&attributes, answer[1].iov_base, sizeof attributes);
  made.header.len = sizeof made;
  made.attr_valid = attributes.attr_valid;
  made.attr_valid_nsec = attributes.attr_valid_nsec;
  fill(made.stat, attributes.attr);
  if (birth_) {
    made.stat.stx_mask |= STATX_BTIME;
    made.stat.stx_btime =
        time_of(static_cast<uint64_t>(birth_->tv_sec), static_cast<uint32_t>(birth_->tv_nsec));
  }
  const ByteSpan bytes = std::as_bytes(std::span(&made, 1));
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace pnfsrdma::fuse_client

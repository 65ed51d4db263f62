// SPDX-License-Identifier: Apache-2.0
#include "library/brick_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace pnfsrdma::library {
namespace {

Result<> check_place(uint64_t offset, uint64_t length) {
  if (offset > INT64_MAX) return fail(EINVAL, "a negative offset");
  if (length > INT64_MAX - offset) return fail(EFBIG, "a file ends before that");
  return {};
}

Result<> check_verified(std::span<const pnfsrdma_range> ranges) {
  constexpr size_t kRangesMax = 1024;
  if (ranges.size() > kRangesMax) return fail(EINVAL, fmt::format("more than {} ranges", kRangesMax));
  uint64_t sum = 0;
  for (const pnfsrdma_range& range : ranges) {
    if (range.offset > INT64_MAX || range.length > INT64_MAX - range.offset) return fail(EINVAL, "a range");
    if (range.length > OpenFile::kVerifiedBytesMax - sum)
      return fail(EINVAL, "ranges of more than 64 MiB together");
    sum += range.length;
  }
  return {};
}

}  // namespace

Result<uint64_t> change_word(OpenFile& file, WordChange change, uint64_t offset, uint32_t flags) {
  if ((flags & ~uint32_t{PNFSRDMA_DURABLE}) != 0) return fail(EINVAL, "the flags");
  TRY(check_place(offset, sizeof(uint64_t)));
  change.offset = offset;
  change.durable = flags != 0 || file.durable();
  TRY(file.check_word(change));
  return file.change_word(change);
}

Result<int> verify(OpenFile& file, std::span<const pnfsrdma_range> ranges, const uint32_t* expected,
                   uint32_t* found) {
  if (!file.readable()) return fail(EBADF, "the file is not open for reading");
  TRY(check_verified(ranges));
  TRY_ASSIGN(const OpenFile::Verified verified, file.verify(ranges));
  if (found != nullptr) std::ranges::copy(verified.checksums, found);
  for (size_t i = 0; expected != nullptr && i < ranges.size(); ++i) {
    if (verified.checksums[i] == expected[i]) continue;
    return fail(EBADMSG,
                fmt::format("{} bytes at {} are not what was written: CRC32C {:08x}, expected {:08x}",
                            ranges[i].length, ranges[i].offset, verified.checksums[i], expected[i]));
  }
  return verified.medium ? PNFSRDMA_VERIFIED_MEDIUM : PNFSRDMA_VERIFIED_COPY;
}

Result<> signal(OpenFile& file, const pnfsrdma_range& range, uint64_t value) {
  TRY(check_place(range.offset, range.length));
  if (!file.writable()) return fail(EBADF, "the file is not open for writing");
  return file.signal(range, value);
}

}  // namespace pnfsrdma::library

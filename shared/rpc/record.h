// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "shared/base/bytes.h"
#include "shared/rpc/limits.h"

// Record marking (RFC 5531, 11): a record is one or more fragments, each behind a 32-bit mark: its length,
// and in the top bit whether it is the last one.
namespace pnfsrdma::rpc {

inline constexpr uint32_t kLastFragment = 0x80000000;
inline constexpr size_t kMarkSize = 4;

// Puts the mark of a record of `size` bytes, sent as one fragment, into `mark`.
void write_record_mark(std::byte (&mark)[kMarkSize], size_t size);

// Turns a byte stream into records. The owner reads into space() and says how much came; large fragments are
// read straight into their record, small ones by way of a buffer of 64 KiB, so that one read(2) brings many.
// The buffer is the thread's, not the reader's: a connection that is silent holds nothing. Not thread-safe.
class RecordReader {
 public:
  // What is longer carries file data.
  static constexpr size_t kLongRecord = size_t{64} << 10;

  explicit RecordReader(size_t record_bytes_max = kRecordBytesMax);

  // Where the next bytes of the stream go, for `most` of them (not 0) or fewer: a record grows by no more, as
  // its new bytes are zeroed first. Never empty. Valid until filled(), which comes before any other reader of
  // this thread is asked.
  MutableByteSpan space(size_t most = SIZE_MAX);
  // `count` bytes have been put there. False: a record would be larger than allowed, or a fragment that is
  // not the last is empty; the stream is lost.
  [[nodiscard]] bool filled(size_t count);
  // The same for bytes that are somewhere else (copies them).
  [[nodiscard]] bool feed(ByteSpan bytes);

  // The oldest whole record not taken yet.
  std::optional<Bytes> next();
  bool has_record() const { return !records_.empty(); }
  // Is there a started record whose end has not come?
  bool mid_record() const { return in_fragment_ || !record_.empty() || tail_ > 0; }
  // Is it a long one, by what its marks say so far?
  bool mid_long_record() const { return record_.size() + (in_fragment_ ? fragment_left_ : 0) > kLongRecord; }
  // Memory of records: of the one whose end has not come, and of those not taken yet.
  size_t held_bytes() const { return record_.capacity() + waiting_bytes_; }

 private:
  [[nodiscard]] bool parse(ByteSpan bytes);
  [[nodiscard]] bool begin_fragment(uint32_t mark);
  void end_fragment();

  // What a record in the queue costs besides its bytes: the object and an allocation.
  static constexpr size_t kRecordCost = sizeof(Bytes) + 24;

  size_t record_bytes_max_;
  std::array<std::byte, kMarkSize> mark_;  // the beginning of one, tail_ bytes
  size_t tail_ = 0;
  size_t direct_from_ = 0;  // size of record_ before space() lengthened it
  bool direct_ = false;     // space() gave room in record_, not in the buffer
  Bytes record_;
  bool in_fragment_ = false;
  bool last_fragment_ = false;
  size_t fragment_left_ = 0;
  std::deque<Bytes> records_;
  size_t waiting_bytes_ = 0;  // of records_
};

}  // namespace pnfsrdma::rpc

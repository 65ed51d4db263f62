// SPDX-License-Identifier: Apache-2.0
#include "shared/rpc/record.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "shared/base/check.h"

namespace pnfsrdma::rpc {
namespace {

constexpr size_t kBufferSize = 65536;
// Fragments with at least this much left go straight into their record.
constexpr size_t kDirectMin = 16384;
// A record grows by as much as has come of it, within these: what a mark announces costs nothing yet.
constexpr size_t kDirectStepMin = 16384;
constexpr size_t kDirectStepMax = 262144;

// Empty between space() and filled() of one reader and those of the next.
std::byte* thread_buffer() {
  thread_local const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBufferSize);
  return buffer.get();
}

}  // namespace

void write_record_mark(std::byte (&mark)[kMarkSize], size_t size) {
  CHECK(size < kLastFragment);
  store_big_endian(mark, kLastFragment | static_cast<uint32_t>(size));
}

RecordReader::RecordReader(size_t record_bytes_max) : record_bytes_max_(record_bytes_max) {}

MutableByteSpan RecordReader::space(size_t most) {
  direct_ = in_fragment_ && fragment_left_ >= kDirectMin;
  if (!direct_) {
    const MutableByteSpan all = MutableByteSpan(thread_buffer(), kBufferSize).subspan(tail_);
    return all.first(std::min(all.size(), most));
  }
  direct_from_ = record_.size();
  const size_t step = std::clamp(direct_from_, kDirectStepMin, kDirectStepMax);
  record_.resize(direct_from_ + std::min({fragment_left_, step, most}));
  return MutableByteSpan(record_).subspan(direct_from_);
}

bool RecordReader::filled(size_t count) {
  if (!direct_) {
    CHECK(count <= kBufferSize - tail_);
    if (count == 0) return true;
    std::memcpy(thread_buffer(), mark_.data(), tail_);
    return parse(ByteSpan(thread_buffer(), std::exchange(tail_, 0) + count));
  }
  direct_ = false;
  CHECK(count <= record_.size() - direct_from_);
  record_.resize(direct_from_ + count);
  fragment_left_ -= count;
  if (fragment_left_ == 0) end_fragment();
  return true;
}

bool RecordReader::feed(ByteSpan bytes) {
  while (!bytes.empty()) {
    const MutableByteSpan to = space();
    const size_t count = std::min(to.size(), bytes.size());
    std::memcpy(to.data(), bytes.data(), count);
    if (!filled(count)) return false;
    bytes = bytes.subspan(count);
  }
  return true;
}

std::optional<Bytes> RecordReader::next() {
  if (records_.empty()) return std::nullopt;
  Bytes record = std::move(records_.front());
  records_.pop_front();
  waiting_bytes_ -= record.capacity() + kRecordCost;
  return record;
}

// Takes apart what has come; keeps at most an incomplete mark.
bool RecordReader::parse(ByteSpan bytes) {
  while (!bytes.empty() || (in_fragment_ && fragment_left_ == 0)) {
    if (!in_fragment_) {
      if (bytes.size() < kMarkSize) break;
      if (!begin_fragment(load_big_endian<uint32_t>(bytes.data()))) return false;
      bytes = bytes.subspan(kMarkSize);
    }
    const size_t count = std::min(fragment_left_, bytes.size());
    record_.insert(record_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
    bytes = bytes.subspan(count);
    fragment_left_ -= count;
    if (fragment_left_ == 0) end_fragment();
  }
  tail_ = bytes.size();
  std::copy(bytes.begin(), bytes.end(), mark_.begin());
  return true;
}

bool RecordReader::begin_fragment(uint32_t mark) {
  const size_t size = mark & ~kLastFragment;
  if (size > record_bytes_max_ - record_.size()) return false;
  last_fragment_ = (mark & kLastFragment) != 0;
  // Marks without bytes would keep us busy for ever, and no record comes of them.
  if (size == 0 && !last_fragment_) return false;
  in_fragment_ = true;
  fragment_left_ = size;
  return true;
}

void RecordReader::end_fragment() {
  in_fragment_ = false;
  if (!last_fragment_) return;
  waiting_bytes_ += record_.capacity() + kRecordCost;
  records_.push_back(std::exchange(record_, {}));
}

}  // namespace pnfsrdma::rpc

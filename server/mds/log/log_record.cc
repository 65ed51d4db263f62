// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_record.h"

#include <openssl/sha.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shared/base/bytes.h"

namespace pnfsrdma::mds {
namespace {

constexpr char kFormat = 2;
constexpr size_t kHashAt = 1;
constexpr size_t kKindAt = kHashAt + sizeof(LogHash);
constexpr size_t kHeaderBytes = kKindAt + 1;
constexpr uint8_t kMakesRoom = 1;
enum ValueKind : char { kWhole = 'W', kFirst = 'F', kMiddle = 'M', kLast = 'L' };

template <typename T>
void put_number(std::string& bytes, T number) {
  std::byte buffer[sizeof(T)];
  store_big_endian(buffer, number);
  bytes += as_text(buffer);
}

// Takes numbers and texts from the front; once something is missing, all is.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : left_(bytes) {}

  template <typename T>
  T number() {
    const std::string_view bytes = text(sizeof(T));
    return sound_ ? load_big_endian<T>(as_bytes(bytes).data()) : T{};
  }
  std::string_view text(size_t size) {
    if (size > left_.size()) {
      sound_ = false;
      left_ = {};
      return {};
    }
    const std::string_view found = left_.substr(0, size);
    left_.remove_prefix(size);
    return found;
  }
  bool sound() const { return sound_; }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool sound_ = true;
};

std::unexpected<Error> unreadable() {
  return fail(EUCLEAN, "the metadata's log has a record that this program cannot read");
}

std::string value_header(ValueKind kind) {
  std::string header(kHeaderBytes, '\0');
  header.front() = kFormat;
  header[kKindAt] = kind;
  return header;
}

}  // namespace

std::string encode_record(const LogRecord& record) {
  std::string bytes;
  put_number(bytes, static_cast<uint8_t>(record.kind));
  if (record.kind != LogRecordKind::kBatch) {
    put_number(bytes, uint64_t{record.checkpoint});
    return bytes;
  }
  put_number(bytes, record.batch.makes_room() ? kMakesRoom : uint8_t{0});
  record.batch.for_each(
      [&](std::string_view key, std::string_view value) {
        put_number(bytes, uint8_t{1});
        put_number(bytes, static_cast<uint32_t>(key.size()));
        put_number(bytes, static_cast<uint32_t>(value.size()));
        bytes += key;
        bytes += value;
      },
      [&](std::string_view key) {
        put_number(bytes, uint8_t{0});
        put_number(bytes, static_cast<uint32_t>(key.size()));
        bytes += key;
      });
  return bytes;
}

size_t encoded_size(const Batch& batch) {
  constexpr size_t kErase = sizeof(uint8_t) + sizeof(uint32_t);
  size_t size = 0;
  batch.for_each(
      [&](std::string_view key, std::string_view value) {
        size += kErase + sizeof(uint32_t) + key.size() + value.size();
      },
      [&](std::string_view key) { size += kErase + key.size(); });
  return size;
}

Result<LogRecord> decode_record(std::string_view bytes) {
  Cursor at(bytes);
  LogRecord record;
  record.kind = static_cast<LogRecordKind>(at.number<uint8_t>());
  switch (record.kind) {
    case LogRecordKind::kCheckpoint:
    case LogRecordKind::kDropCheckpoint:
      record.checkpoint = static_cast<SnapshotNumber>(at.number<uint64_t>());
      if (!at.sound() || !at.at_end()) return unreadable();
      return record;
    case LogRecordKind::kBatch:
      break;
    default:
      return unreadable();
  }
  const auto flags = at.number<uint8_t>();
  if (flags > kMakesRoom) return unreadable();
  if (flags == kMakesRoom) record.batch.mark_makes_room();
  while (at.sound() && !at.at_end()) {
    const auto is_put = at.number<uint8_t>();
    if (is_put > 1) return unreadable();
    const auto key_size = at.number<uint32_t>();
    const auto value_size = is_put == 1 ? at.number<uint32_t>() : 0;
    const std::string_view key = at.text(key_size);
    const std::string_view value = at.text(value_size);
    if (!at.sound()) return unreadable();
    is_put == 1 ? record.batch.put(key, value) : record.batch.erase(key);
  }
  if (!at.sound()) return unreadable();
  return record;
}

bool ends_value(std::string_view record) {
  return record.starts_with(static_cast<char>(LogRecordKind::kCheckpoint));
}

LogHash hash_of(std::string_view value) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(value.data()), value.size(), digest.data());
  LogHash front;
  std::memcpy(front.data(), digest.data(), front.size());
  return front;
}

void chain_value(std::string& value, const LogHash& before) {
  std::memcpy(value.data() + kHashAt, before.data(), before.size());
}

std::optional<LogHash> hash_before(std::string_view value) {
  if (value.size() < kHeaderBytes) return std::nullopt;
  LogHash hash;
  std::memcpy(hash.data(), value.data() + kHashAt, hash.size());
  return hash;
}

bool ValueBuilder::add(std::string_view record) {
  const size_t size = sizeof(uint32_t) + record.size();
  if (std::max(bytes_.size(), kHeaderBytes) + size > kLogValueBytesMax) return false;
  if (bytes_.empty()) bytes_ = value_header(kWhole);
  put_number(bytes_, static_cast<uint32_t>(record.size()));
  bytes_ += record;
  return true;
}

std::string ValueBuilder::take() {
  return std::exchange(bytes_, {});
}

std::vector<std::string> ValueBuilder::parts_of(std::string_view record) {
  std::vector<std::string> parts;
  if (kHeaderBytes + sizeof(uint32_t) + record.size() <= kLogValueBytesMax) return parts;
  // What does not fit as a whole has two parts at least: none is the first and the last one.
  constexpr size_t kPart = kLogValueBytesMax - kHeaderBytes - sizeof(uint32_t);
  for (size_t at = 0; at < record.size(); at += kPart) {
    const ValueKind kind = at == 0 ? kFirst : at + kPart < record.size() ? kMiddle : kLast;
    parts.push_back(value_header(kind) + std::string(record.substr(at, kPart)));
  }
  return parts;
}

Result<std::vector<LogRecord>> ValueReader::take(std::string_view value) {
  std::vector<LogRecord> records;
  if (!value.empty() && value[0] != kFormat) {
    return fail(ENOTSUP, "the metadata's log in etcd has a value of format " +
                             std::to_string(static_cast<uint8_t>(value[0])) + "; this program knows format " +
                             std::to_string(kFormat) + ": run the version that wrote it");
  }
  if (value.size() < kHeaderBytes) return unreadable();
  const char kind = value[kKindAt];
  value.remove_prefix(kHeaderBytes);
  switch (kind) {
    case kWhole: {
      partial_.reset();  // its writer died between the parts
      for (Cursor at(value); !at.at_end();) {
        const auto size = at.number<uint32_t>();
        const std::string_view bytes = at.text(size);
        if (!at.sound()) return unreadable();
        TRY_ASSIGN(LogRecord record, decode_record(bytes));
        records.push_back(std::move(record));
      }
      return records;
    }
    case kFirst:
      partial_ = std::string(value);
      return records;
    case kMiddle:
    case kLast:
      if (!partial_) return unreadable();
      *partial_ += value;
      if (kind == kMiddle) return records;
      {
        const std::string whole = *std::exchange(partial_, std::nullopt);
        TRY_ASSIGN(LogRecord record, decode_record(whole));
        records.push_back(std::move(record));
      }
      return records;
    default:
      return unreadable();
  }
}

}  // namespace pnfsrdma::mds

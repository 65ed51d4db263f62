// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/mds/log/log_keys.h"
#include "server/mds/meta/key_value.h"
#include "shared/base/result.h"

// What the log's values contain. A record is what a store applies; values are what the key server keeps: many small
// records in one value, or a part of a large one. Numbers are big-endian.
//
//   value   = format (1 byte: 2), the hash of the value before it (16; zeros: it is the first), kind, the rest
//             kind 'W': whole records, each behind its length (4 bytes)
//             kind 'F', 'M', 'L': the first, a middle, the last part of one record. It is void without its last part
//   record  = kind (1 byte), the rest
//             kind 1: a batch: flags (1 byte; 1: makes room), then its operations in order:
//                     1 byte (1: put, 0: erase), length of the key (4), of the value (4; put only), key, value
//             kind 2: a checkpoint is made here; its number (8)
//             kind 3: one is dropped; its number (8)
namespace pnfsrdma::mds {

enum class LogRecordKind : uint8_t {
  kBatch = 1,
  kCheckpoint = 2,
  kDropCheckpoint = 3,
};

struct LogRecord {
  LogRecordKind kind = LogRecordKind::kBatch;
  Batch batch;
  SnapshotNumber checkpoint = 0;  // of the other kinds
};

std::string encode_record(const LogRecord& record);
// How many bytes the operations of a batch have there.
size_t encoded_size(const Batch& batch);
// EUCLEAN: a newer program wrote it, or it is damaged.
Result<LogRecord> decode_record(std::string_view bytes);

// Nothing goes behind this record in its value: after a crash the value is applied once more, and the copy must not get
// what came later.
bool ends_value(std::string_view record);

// A value has no more bytes: etcd refuses requests above 1.5 MiB.
inline constexpr size_t kLogValueBytesMax = size_t{1} << 20;

// The first 128 bits of its SHA-256.
LogHash hash_of(std::string_view value);
// Makes it the one behind the value of this hash.
void chain_value(std::string& value, const LogHash& before);
// Of the value before this one. nullopt: it has none, because it is no value.
std::optional<LogHash> hash_before(std::string_view value);

// Puts records into values.
class ValueBuilder {
 public:
  // False: there is no room for this one any more.
  bool add(std::string_view record);
  bool empty() const { return bytes_.empty(); }
  // What was added, as the first value of a log: chain_value(). Starts anew.
  std::string take();

  // The values of a record that no value has room for, in the same form. Empty: one has.
  static std::vector<std::string> parts_of(std::string_view record);

 private:
  std::string bytes_;
};

// Takes records out of values, in the order of the log.
class ValueReader {
 public:
  // What this value completes. ENOTSUP: another version of the program wrote it. EUCLEAN as of decode_record().
  Result<std::vector<LogRecord>> take(std::string_view value);
  // Between the parts of a record: what comes before is needed again after a restart.
  bool in_the_middle() const { return partial_.has_value(); }

 private:
  std::optional<std::string> partial_;
};

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "shared/base/random.h"
#include "shared/base/result.h"

namespace pnfsrdma::brick {

inline constexpr size_t kPartitionNameMax = 63;

// 1 to 63 letters, digits, '.', '_' and '-', a letter or digit in front.
bool is_partition_name(std::string_view name);

// Whoever has it owns a partition: 256 bits from a CSPRNG. A brick keeps the secret() only; that is what both sides
// show each other to have (TLS 1.3 by a pre-shared key), so it lets in, too: the medium is to be read by root only.
class PartitionKey {
 public:
  using Bytes = std::array<std::byte, 32>;

  static PartitionKey make(Random& random);
  // What text() gives; white space around it is left out. EINVAL.
  static Result<PartitionKey> parse(std::string_view text);
  // EPERM: others than its owner may read the file.
  static Result<PartitionKey> read_file(const std::string& path);

  // "pnfsrdma-partition-key-1:" and 64 hexadecimal digits.
  std::string text() const;
  Bytes secret() const;

 private:
  explicit PartitionKey(const Bytes& bytes) : bytes_(bytes) {}

  Bytes bytes_;
};

}  // namespace pnfsrdma::brick

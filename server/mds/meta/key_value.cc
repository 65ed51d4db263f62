// SPDX-License-Identifier: Apache-2.0
#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

void Batch::append(const Batch& other) {
  bytes_ += other.bytes_;
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
}

void Batch::add(std::string_view key, std::string_view value, bool is_put) {
  bytes_ += key;
  bytes_ += value;
  entries_.push_back({static_cast<uint32_t>(key.size()), static_cast<uint32_t>(value.size()), is_put});
}

}  // namespace pnfsrdma::mds

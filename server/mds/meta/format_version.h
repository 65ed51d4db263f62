// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "server/mds/meta/key_value.h"

namespace pnfsrdma::mds {

// The grammar of keys.h and values.h as a whole. Raised when an older program could damage what a newer one
// wrote. 1: one brick. 2: brick records, addresses in zones. 3: memory that several extents name, snapshots, ACLs. An
// older program would free such memory with the first of its files, write into a snapshot's, and take an ACL's mask
// for the group's rights. 4: quotas; an older program would not count.
inline constexpr uint64_t kFormatVersion = 4;
inline constexpr uint64_t kFormatShared = 3;
inline constexpr uint64_t kFormatQuotas = 4;
// Of a store without any of them: an older program may still use it.
inline constexpr uint64_t kFormatBasic = 2;

// The batch brings what programs that know less than `format` do not know; the stored version never goes down.
Result<> raise_format_version(KeyValueStore& store, Batch& batch, uint64_t format);
// The same for who knows what is stored: nothing is read. Never a lower one than that.
void raise_format_version(Batch& batch, uint64_t format);

// ENOTSUP: the version on record is one of a newer program. EUCLEAN: it is none.
Result<> check_format_row(std::string_view stored);

// Writes the version into an empty store. EUCLEAN for a store that is not ours, ENOTSUP for one of a newer
// program. Blocks.
Result<> check_format_version(KeyValueStore& store);

}  // namespace pnfsrdma::mds

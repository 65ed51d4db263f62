// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "library/open_file.h"
#include "library/pnfsrdma.h"
#include "library/word_change.h"
#include "shared/base/result.h"

// What a program has bricks do with a file and that is no read or write, with its arguments checked: by a function, or
// by an operation of a queue. All of it waits.
namespace pnfsrdma::library {

// What the word was. `change` without a place. Errors: EINVAL, EBADF, and as OpenFile::change_word().
Result<uint64_t> change_word(OpenFile& file, WordChange change, uint64_t offset, uint32_t flags);
// PNFSRDMA_VERIFIED_*. Errors: EINVAL, EBADF; EBADMSG names the first range that is not what is expected.
Result<int> verify(OpenFile& file, std::span<const pnfsrdma_range> ranges, const uint32_t* expected,
                   uint32_t* found);
// Errors: EINVAL, EBADF, and as OpenFile::signal().
Result<> signal(OpenFile& file, const pnfsrdma_range& range, uint64_t value);

}  // namespace pnfsrdma::library

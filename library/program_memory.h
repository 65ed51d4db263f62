// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "shared/base/bytes.h"
#include "shared/base/result.h"

// Memory that is the program's own, looked at before it is registered. What an Error says names cause and fix.
namespace pnfsrdma::library {

// So many bytes, rounded up: a page at least. ENOMEM: no process has that much.
Result<size_t> whole_pages(size_t size);
// Whole pages that are all there and may be written. Errors: EINVAL (no whole pages), EFAULT.
Result<> check_memory(MutableByteSpan memory);
// The descriptor is a memfd that cannot be cut, of `size` bytes at least, which are whole pages. Errors: EINVAL;
// ENOTSUP: memory of a device (dma-buf).
Result<> check_memfd(int descriptor, size_t size);

// A child of a fork(2) has it not: what the child did to its pages would decide where the adapter writes. EINVAL: not
// whole (huge) pages.
Result<> keep_from_children(MutableByteSpan memory);
void leave_to_children(MutableByteSpan memory);

// Maps `size` bytes (whole pages) of the descriptor, or without one (-1) zeroed memory of this process's, at `wanted`
// or, where that is null, anywhere. EEXIST: something is mapped there. EINVAL: `wanted` is not the beginning of a
// page.
Result<MutableByteSpan> map_pages(int descriptor, size_t size, void* wanted);

}  // namespace pnfsrdma::library

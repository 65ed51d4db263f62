// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/tree/tree.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

// A file as found, to be read; ESTALE: another one has the name by now.
Result<FileDescriptor> open_file(const Entry& file);
// Where a symbolic link leads to.
Result<std::string> target_of(const Entry& link);

// Whether two files of one size have the same bytes. Where both have holes nothing is read.
Result<bool> same_bytes(const Entry& before, const Entry& after);

// The bytes of one file into another, which is empty: holes stay holes. Not durable.
Result<> copy_bytes(int source, int target, uint64_t size);

}  // namespace pnfsrdma::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "shared/pmem/sysfs.h"

namespace pnfsrdma::pmem {

// Why it is not known that a device keeps its content without power, in words for people; empty: it does.
// What we have no knowledge of is doubtful. Facts: Linux, drivers/nvdimm, drivers/acpi/nfit,
// drivers/cxl/pmem.c.

// Of memory on the NVDIMM bus at this place in sysfs, made durable by flushing CPU cache lines.
std::string doubt_of_memory(const std::string& place);

// Of a block device, made durable by its own flush (fsync). An empty answer for one that sysfs does not know:
// file systems of the network, and those with a device number of their own, are taken at their word.
std::string doubt_of_block_device(dev_t device, const Sysfs& sysfs = Sysfs());

// tmpfs, ramfs and hugetlbfs, by the type that statfs() tells.
bool lives_in_memory(int64_t filesystem);

}  // namespace pnfsrdma::pmem

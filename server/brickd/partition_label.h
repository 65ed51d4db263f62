// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/brickd/format.h"
#include "shared/base/bytes.h"
#include "shared/base/random.h"
#include "shared/base/result.h"
#include "shared/pmem/persistence.h"

namespace pnfsrdma::brick {

// Where a partition lies.
struct PartitionPlace {
  std::string name;
  uint64_t offset = 0;
  uint64_t length = 0;
};

// What the beginning of a device or file says of its partitions: two copies, which a change writes one behind
// the other, so it is made or it is not. `region` is the first kLabelRegion bytes, and outlives it.
class PartitionLabel {
 public:
  // EINVAL: none is there; EPROTO: of a newer version; EUCLEAN: both copies are damaged, or say what cannot be.
  static Result<PartitionLabel> open(MutableByteSpan region, pmem::Persistence& persistence, uint64_t size);
  // Without partitions. EEXIST: there is a pool or a label, and not `force`.
  static Result<> write_new(MutableByteSpan region, pmem::Persistence& persistence, bool force,
                            Random& random);

  // In the order of their places.
  std::vector<PartitionPlace> partitions() const;
  std::optional<PartitionPlace> find(std::string_view name) const;
  // The first gap of so many bytes (a multiple of `alignment`). ENOSPC, naming the largest there is.
  Result<uint64_t> gap(uint64_t length, uint64_t alignment) const;
  uint64_t largest_gap(uint64_t alignment) const;

  // Durable when they return. EEXIST, ENOSPC (31 are there); ENOENT.
  Result<> add(const PartitionPlace& place);
  Result<> remove(std::string_view name);

 private:
  struct Gap {
    uint64_t offset = 0;
    uint64_t length = 0;
  };
  PartitionLabel(MutableByteSpan region, pmem::Persistence& persistence, uint64_t size)
      : region_(region), persistence_(persistence), size_(size) {}

  std::vector<Gap> gaps(uint64_t alignment) const;
  bool is_possible() const;
  Result<> store();

  MutableByteSpan region_;
  pmem::Persistence& persistence_;
  uint64_t size_;
  format::Label content_;
  unsigned current_ = 0;
};

}  // namespace pnfsrdma::brick

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pnfsrdma.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace pnfsrdma::bench {

// kChain: kChainRanges of kChainBytes each, one in each 4 KiB of the length, flushed together.
enum class Action { kRead, kWrite, kDurableWrite, kChain };
inline constexpr size_t kChainRanges = 16, kChainBytes = 64;

// A file to read and write, one way or another. Offsets and lengths are multiples of 4 KiB.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;
  // Operations of `length` bytes at offsets of `next`'s, `depth` in flight, until `next` returns a negative one;
  // `done` gets the nanoseconds of each. Throws std::runtime_error.
  virtual void run(Action action, size_t length, unsigned depth, const std::function<int64_t()>& next,
                   const std::function<void(int64_t)>& done) = 0;
};

// A file of the connection, and one below a mount's folder with the same server behind it. Both are made with
// `size` bytes, and removed in the end.
std::unique_ptr<Target> make_library_target(pnfsrdma_client* client, std::string name, uint64_t size);
std::unique_ptr<Target> make_mount_target(const std::string& folder, uint64_t size);

}  // namespace pnfsrdma::bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/tree/tree.h"
#include "shared/base/result.h"

namespace pnfsrdma::cli {

// In what two things of one name may differ.
enum class Aspect : uint32_t {
  kType = 1,
  kData = 2,    // the bytes of a file
  kTarget = 4,  // of a symbolic link
  kDevice = 8,  // the numbers of a device node
  kMode = 16,
  kOwner = 32,  // user or group
  kTimes = 64,
  kAttributes = 128,  // extended attributes
  kAcl = 256,
  kLinks = 512,  // names that are one file in one tree are two in the other one
};

class Aspects {
 public:
  void add(Aspect aspect) { bits_ |= static_cast<uint32_t>(aspect); }
  void drop(Aspect aspect) { bits_ &= ~static_cast<uint32_t>(aspect); }
  bool has(Aspect aspect) const { return (bits_ & static_cast<uint32_t>(aspect)) != 0; }
  bool any() const { return bits_ != 0; }
  // More than attributes.
  bool are_of_content() const;
  // "data", "mode"; new data have a new time.
  std::vector<std::string> words() const;

 private:
  uint32_t bits_ = 0;
};

// How two things differ, as far as they can. The same inode with the same change time is the same, and not looked at
// any further. Bytes of files of one size are read only with `content`; without, the modification time tells.
// Errors: of the calls that read them.
Result<Aspects> differences(const Entry& before, const Entry& after, bool content);

// Names of one file: which file of one tree is which of the other one.
class LinkedFiles {
 public:
  // Notes the pair; false: one of them has been seen in another pair.
  bool match(const Status& before, const Status& after);

 private:
  std::unordered_map<uint64_t, uint64_t> after_of_;
  std::unordered_map<uint64_t, uint64_t> before_of_;
};

}  // namespace pnfsrdma::cli

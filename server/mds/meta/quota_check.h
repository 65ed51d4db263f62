// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "server/mds/meta/key_value.h"
#include "server/mds/meta/quota.h"
#include "server/mds/meta/quotas.h"
#include "shared/base/result.h"

namespace pnfsrdma::mds {

// For check_namespace(): what is on record of quotas is what the inodes add up to, as far as they are counted.
class QuotaCheck {
 public:
  // Errors: those of the store, EUCLEAN (records that cannot be read).
  static Result<QuotaCheck> open(KeyValueStore& store);

  void add(const Inode& inode);
  // Of each name, with the tree numbers of the directory and of what it leads to.
  struct Named {
    TreeNumber directory_tree;
    InodeId inode = kNoInode;
    TreeNumber tree;
    bool is_directory = false;
  };
  // Whether it is where its number says. A file that has names elsewhere may have the number of what it was found in
  // first, and keep it for ever.
  bool is_placed(const Named& name) const;
  // Calls `problem` with a sentence for each difference.
  Result<> compare(const std::function<void(std::string)>& problem);

 private:
  struct Sum {
    uint64_t space = 0;
    uint64_t inodes = 0;
  };
  explicit QuotaCheck(Quotas quotas) : quotas_(std::move(quotas)) {}

  Quotas quotas_;
  std::unordered_map<QuotaId, Sum, QuotaHash> sums_;
  std::map<TreeNumber, bool> roots_;  // of each tree, whether its directory was met
};

}  // namespace pnfsrdma::mds

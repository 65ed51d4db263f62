// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "server/mds/log/key_server.h"

namespace pnfsrdma::mds {

// What a key server keeps, and what its transactions do to it. Not thread-safe.
class KeyRows {
 public:
  const std::map<std::string, KeyRow>& all() const { return rows_; }
  // 0: there is no such key.
  KeyRevision revision_of(const std::string& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? 0 : found->second.revision;
  }
  void put(const std::string& key, std::string value) { rows_[key] = {key, std::move(value), ++revision_}; }
  void erase(const std::string& key) { rows_.erase(key); }

  KeyOutcome commit(const KeyTransaction& transaction) {
    KeyOutcome outcome;
    outcome.done = std::ranges::all_of(transaction.if_all, [&](const KeyTransaction::Known& known) {
      return revision_of(known.key) == known.revision;
    });
    if (outcome.done) {
      outcome.revision = ++revision_;
      for (const auto& put : transaction.puts) rows_[put.key] = {put.key, put.value, revision_};
      for (const std::string& key : transaction.erases) rows_.erase(key);
      return outcome;
    }
    for (const std::string& key : transaction.otherwise_read) {
      if (const auto found = rows_.find(key); found != rows_.end()) outcome.found.push_back(found->second);
    }
    return outcome;
  }

  std::vector<KeyRow> range(std::string_view from, std::string_view end, size_t limit) const {
    std::vector<KeyRow> found;
    for (auto at = rows_.lower_bound(std::string(from));
         at != rows_.end() && at->first < end && found.size() < limit; ++at)
      found.push_back(at->second);
    return found;
  }

  KeyRevision erase(std::string_view from, std::string_view end) {
    rows_.erase(rows_.lower_bound(std::string(from)), rows_.lower_bound(std::string(end)));
    return ++revision_;
  }

 private:
  std::map<std::string, KeyRow> rows_;
  KeyRevision revision_ = 0;
};

}  // namespace pnfsrdma::mds

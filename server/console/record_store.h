// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "shared/base/result.h"

namespace pnfsrdma::console {

// Where the console keeps what must survive: users and tokens. Control loop only.
class RecordStore {
 public:
  virtual ~RecordStore() = default;

  // All records, by key.
  virtual Result<std::map<std::string, std::string>> load() = 0;
  // Puts, or erases (nullopt), all or nothing; `done` when that is durable.
  using Changes = std::map<std::string, std::optional<std::string>>;
  virtual void change(const Changes& changes, std::function<void(Result<>)> done) = 0;
};

}  // namespace pnfsrdma::console

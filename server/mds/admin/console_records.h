// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/console/record_store.h"
#include "server/mds/meta/records.h"

namespace pnfsrdma::mds {

// The console's records in the metadata engine. Control loop only.
class ConsoleRecords final : public console::RecordStore {
 public:
  explicit ConsoleRecords(KeyValueStore& store) : store_(store), records_(store) {}

  Result<std::map<std::string, std::string>> load() override;
  void change(const Changes& changes, std::function<void(Result<>)> done) override;

 private:
  KeyValueStore& store_;
  Records records_;
};

}  // namespace pnfsrdma::mds

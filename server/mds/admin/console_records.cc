// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/console_records.h"

namespace pnfsrdma::mds {

Result<std::map<std::string, std::string>> ConsoleRecords::load() {
  std::map<std::string, std::string> all;
  TRY(records_.scan(RecordKind::kConsole, [&](std::string_view key, std::string_view value) {
    all.emplace(key, value);
    return true;
  }));
  return all;
}

void ConsoleRecords::change(const Changes& changes, std::function<void(Result<>)> done) {
  Batch batch;
  for (const auto& [key, value] : changes) {
    if (value) {
      Records::put(batch, RecordKind::kConsole, key, *value);
    } else {
      Records::erase(batch, RecordKind::kConsole, key);
    }
  }
  const auto committed = store_.commit(batch, CommitKind::kNamespace);
  if (!committed) return done(std::unexpected(committed.error()));
  store_.when_synced(*committed, [done = std::move(done)] { done({}); });
}

}  // namespace pnfsrdma::mds

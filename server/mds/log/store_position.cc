// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/store_position.h"

#include "server/mds/meta/keys.h"
#include "server/mds/meta/values.h"

namespace pnfsrdma::mds {
namespace {

constexpr std::string_view kPositionName = "log-position";

struct StoredLogPosition {
  xdr::String<64> identity;
  uint64_t applied = 0;
  std::array<std::byte, sizeof(LogHash)> hash{};
  bool joined = false;
};

}  // namespace

Result<std::optional<StorePosition>> read_position(KeyValueStore& store) {
  TRY_ASSIGN(const std::optional<std::string> row, store.get(meta_key(kPositionName)));
  if (!row) return std::nullopt;
  const auto stored = read_value<StoredLogPosition>(*row, "the position in the log");
  if (!stored) {
    return fail(stored.error().number(),
                stored.error().to_string() +
                    ". If an older program wrote it: --leave-log on the server that served "
                    "last, then it begins another log; the other one gets a copy");
  }
  return StorePosition{stored->identity, {stored->applied, stored->hash}, stored->joined};
}

void put_position(Batch& batch, const StorePosition& position) {
  StoredLogPosition stored;
  stored.identity = position.identity;
  stored.applied = position.applied.position;
  stored.hash = position.applied.hash;
  stored.joined = position.joined;
  put_value(batch, meta_key(kPositionName), stored);
}

Result<> erase_position(KeyValueStore& store) {
  Batch batch;
  batch.erase(meta_key(kPositionName));
  TRY(store.commit(batch, CommitKind::kNamespace));
  return store.sync();
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/follower.h"

#include <cerrno>
#include <optional>
#include <utility>

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kStoreTurn{10};

}  // namespace

Follower::Follower(EventLoop& loop, KeyValueStore& store, LogKeys keys, StorePosition position)
    : loop_(loop),
      store_(store),
      keys_(std::move(keys)),
      position_(std::move(position)),
      taken_(position_.applied) {}

Result<> Follower::take(const std::vector<KeyRow>& rows) {
  for (const KeyRow& row : rows) {
    const auto position = keys_.position_of(row.key);
    if (!position || *position != next()) return std::unexpected(missing());
    TRY_ASSIGN(std::vector<LogRecord> records, reader_.take(row.value));
    if (!reader_.in_the_middle()) TRY(apply(std::move(records), *position));
    taken_ = *position;
  }
  return {};
}

Error Follower::missing() const {
  return {ENODATA,
          "the log in etcd no longer has " + keys_.value(next()) +
              ", which comes next here: this server was away for too long. Stop the server that is up to "
              "date, copy its metadata directory to this one, and start both"};
}

Result<> Follower::apply(std::vector<LogRecord> records, LogPosition position) {
  Batch batch;
  for (LogRecord& record : records) {
    switch (record.kind) {
      case LogRecordKind::kBatch:
        batch.append(record.batch);
        break;
      case LogRecordKind::kCheckpoint:
        TRY(commit(std::exchange(batch, {}), position_));
        TRY(make_checkpoint(record.checkpoint));
        break;
      case LogRecordKind::kDropCheckpoint:
        TRY(drop_checkpoint(record.checkpoint));
        break;
    }
  }
  return commit(std::move(batch), {position_.identity, position});
}

Result<> Follower::commit(Batch batch, const StorePosition& position) {
  put_position(batch, position);
  batch.mark_makes_room();  // nobody is there to whom a full disk could be told
  for (;;) {
    const auto committed = store_.commit(batch, CommitKind::kState);
    if (committed) break;
    if (committed.error().number() != EAGAIN) return std::unexpected(committed.error());
    loop_.run_once(kStoreTurn);
  }
  position_ = position;
  return {};
}

// One that is there is of an earlier try, which may have ended anywhere.
Result<> Follower::make_checkpoint(SnapshotNumber number) {
  std::optional<Result<>> outcome;
  store_.checkpoint(number, [&](Result<> done) { outcome = std::move(done); });
  while (!outcome) loop_.run_once(kStoreTurn);
  if (*outcome || outcome->error().number() != EEXIST) return *outcome;
  TRY(drop_checkpoint(number));
  outcome.reset();
  store_.checkpoint(number, [&](Result<> done) { outcome = std::move(done); });
  while (!outcome) loop_.run_once(kStoreTurn);
  return *outcome;
}

Result<> Follower::drop_checkpoint(SnapshotNumber number) {
  std::optional<Result<>> outcome;
  store_.drop_checkpoint(number, [&](Result<> done) { outcome = std::move(done); });
  while (!outcome) loop_.run_once(kStoreTurn);
  return *outcome;
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/follower.h"

#include <cerrno>
#include <optional>
#include <utility>

#include "server/mds/meta/format_version.h"
#include "server/mds/meta/keys.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kStoreTurn{10};
constexpr Milliseconds kRoomTurn{500};  // between tries of a copy

// A store that has become one of a newer program's is not for this one to serve.
Result<> check_format_of(const Batch& batch) {
  Result<> known;
  batch.for_each(
      [&](std::string_view key, std::string_view value) {
        if (known && key == meta_key("format")) known = check_format_row(value);
      },
      [](std::string_view) {});
  return known;
}

}  // namespace

Follower::Follower(EventLoop& loop, KeyValueStore& store, LogKeys keys, StorePosition position,
                   std::function<bool()> stopping)
    : loop_(loop),
      store_(store),
      keys_(std::move(keys)),
      stopping_(std::move(stopping)),
      position_(std::move(position)),
      last_(position_.applied) {}

Result<> Follower::take(const std::vector<KeyRow>& rows) {
  for (const KeyRow& row : rows) {
    const auto position = keys_.position_of(row.key);
    if (!position || *position != next()) return std::unexpected(missing());
    ValueReader reader = reader_;
    TRY_ASSIGN(std::vector<LogRecord> records, reader.take(row.value));
    if (hash_before(row.value) != last_.hash) return std::unexpected(went_back(keys_.value(last_.position)));
    const LogPoint end{*position, hash_of(row.value)};
    if (!reader.in_the_middle()) TRY(apply(std::move(records), end));
    reader_ = std::move(reader);
    last_ = end;
  }
  return {};
}

Error Follower::missing() const {
  return {
      ENODATA,
      "the log in etcd no longer has " + keys_.value(next()) +
          ", which comes next here: this server was away for too long. With metadata_log.copies on both, it "
          "begins with a copy by itself; else stop the server that is up to date, copy its metadata "
          "directory to this one, and start both"};
}

Error went_back(const std::string& key) {
  return {ENODATA, "the log in etcd does not have " + key +
                       " as this store has it: etcd was restored from a backup, or has lost what it had "
                       "acknowledged. See \"A log that went back\" in the guide"};
}

Result<> Follower::apply(std::vector<LogRecord> records, const LogPoint& end) {
  Batch batch;
  bool makes_room = true;
  for (LogRecord& record : records) {
    switch (record.kind) {
      case LogRecordKind::kBatch:
        TRY(check_format_of(record.batch));
        makes_room = makes_room && record.batch.makes_room();
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
  if (makes_room && !batch.empty()) batch.mark_makes_room();
  return commit(std::move(batch), {position_.identity, end});
}

Result<> Follower::commit(Batch batch, const StorePosition& position) {
  put_position(batch, position);
  for (;;) {
    const auto committed = store_.commit(batch, CommitKind::kState);
    if (committed) break;
    if (committed.error().number() != EAGAIN) return std::unexpected(committed.error());
    if (stopping_()) return fail(ECANCELED, "stopping");
    loop_.run_once(kStoreTurn);
  }
  position_ = position;
  return {};
}

// Until there is room for it: a standby that ended instead would come to the same place again.
Result<> Follower::make_checkpoint(SnapshotNumber number) {
  for (;;) {
    const Result<> made = try_checkpoint(number);
    no_room_for_copy_ = !made && made.error().number() == ENOSPC;
    if (!no_room_for_copy_) return made;
    if (stopping_()) return fail(ECANCELED, "stopping");
    loop_.run_once(kRoomTurn);
  }
}

// One that is there is of an earlier try, which may have ended anywhere.
Result<> Follower::try_checkpoint(SnapshotNumber number) {
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

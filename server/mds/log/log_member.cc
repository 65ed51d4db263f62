// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_member.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "server/mds/log/log_writer.h"
#include "server/mds/log/replicated_store.h"
#include "server/mds/meta/keys.h"
#include "shared/base/bytes.h"
#include "shared/base/log.h"
#include "shared/base/sync.h"

namespace pnfsrdma::mds {
namespace {

constexpr Milliseconds kPoll{100};
constexpr Milliseconds kSayEvery{1000};
constexpr Milliseconds kTellEvery{500};
constexpr size_t kValuesRead = 16;
constexpr KeyRevision kNever = -1;
// Behind the identity's digits: the log began with a store without a row, so another one may begin with the log.
constexpr std::string_view kFromNothing = " from-nothing";
constexpr const char* kBootIdPath = "/proc/sys/kernel/random/boot_id";

std::string random_digits(Random& random) {
  std::array<std::byte, 16> bytes;
  random.fill(bytes);
  return to_hex(bytes);
}

// The first start of a server gives it a row of this name.
Result<bool> never_served(KeyValueStore& store) {
  TRY_ASSIGN(const std::optional<std::string> boot, store.get(meta_key("boot")));
  return !boot;
}

}  // namespace

struct LogMember::Keys {
  std::string identity;
  LeadWatch::Seen seen;
  LogPosition trimmed = 0;
  KeyRevision trimmed_revision = 0;
};

LogMember::LogMember(EventLoop& loop, Random& random, Options options)
    : loop_(loop),
      random_(random),
      options_(std::move(options)),
      keys_{options_.prefix},
      claim_{options_.name, random_digits(random), options_.place},
      server_(options_.connect()),
      watch_(options_.place),
      term_(options_.clock) {}

LogMember::~LogMember() = default;

Result<bool> LogMember::lead(KeyValueStore& store, const std::function<bool()>& stopping) {
  TRY(join(store, stopping));
  if (stopping()) return false;
  Follower follower(loop_, store, keys_, position_, stopping);
  log_info("mds", "standby name={} log={} position={}", options_.name, position_.identity, position_.applied);
  for (bool more = false; lead_ == 0;) {
    loop_.run_once(more ? Milliseconds(0) : kPoll);
    if (stopping()) return false;
    const auto followed = follow(follower);
    if (stopping()) return false;
    TRY_ASSIGN(const std::optional<size_t> came, followed);
    TRY(say_position(store, follower.position().applied));
    more = came.value_or(0) > 0;
    if (lead_ == 0 && came && !more && watch_.may_take(options_.clock.now())) try_take();
  }
  TRY(follow_to_end(follower));
  follower.drop_parts();
  position_ = follower.position();
  written_ = follower.next() - 1;
  log_info("mds", "leading name={} log={} position={}", options_.name, position_.identity, written_);
  return true;
}

Result<> LogMember::join(KeyValueStore& store, const std::function<bool()>& stopping) {
  while (!stopping()) {
    TRY_ASSIGN(const bool joined, try_join(store));
    if (joined) return {};
    loop_.run_once(kPoll);
  }
  return {};
}

Result<bool> LogMember::try_join(KeyValueStore& store) {
  const auto keys = read_keys();
  answered(keys ? Result<>() : std::unexpected(keys.error()));
  if (!keys) return false;
  const std::string identity = keys->identity.substr(0, keys->identity.find(' '));
  TRY_ASSIGN(const auto position, read_position(store));
  TRY_ASSIGN(const bool from_nothing, never_served(store));
  if (position && position->identity == identity) {
    position_ = *position;
    return is_of_this_log(position->applied, keys->trimmed);
  }
  if (identity.empty()) {
    if (position && position->applied > 0) {
      return fail(ENOENT, "the metadata store belongs to log " + position->identity +
                              ", and there is no log in etcd under " + keys_.prefix +
                              ": check metadata_log, or take the store out of that log with --leave-log");
    }
    // The store knows first: else a crash in between would leave a log that nobody may begin.
    const StorePosition first{position ? position->identity : random_digits(random_), 0};
    TRY(begin_at(store, first));
    const std::string text = first.identity + std::string(from_nothing ? kFromNothing : "");
    const auto made = server_->commit({.if_all = {{keys_.identity(), 0}},
                                       .puts = {{keys_.identity(), text}},
                                       .erases = {},
                                       .otherwise_read = {}});
    if (made && made->done) log_info("mds", "log-begun log={} prefix={}", first.identity, keys_.prefix);
    return false;  // looks again: another server may have been first
  }
  if (position && position->applied > 0) {
    return fail(EINVAL, "the metadata store belongs to log " + position->identity + ", and etcd has log " +
                            identity + " under " + keys_.prefix +
                            ": check metadata_log, or take the store out of its log with --leave-log");
  }
  if (!from_nothing || !keys->identity.ends_with(kFromNothing)) {
    return fail(EINVAL, "the log in etcd under " + keys_.prefix +
                            " began with the metadata of another server: stop that one, copy its metadata "
                            "directory to this one, and start both");
  }
  TRY(begin_at(store, {identity, 0}));
  position_ = {identity, 0};
  return true;
}

// False: etcd does not answer. What the store has was in the log, and goes behind the trimmed position only.
Result<bool> LogMember::is_of_this_log(LogPosition applied, LogPosition trimmed) {
  if (applied <= trimmed) return true;
  const auto rows = server_->range(keys_.value(applied), keys_.value(applied + 1), 1);
  answered(rows ? Result<>() : std::unexpected(rows.error()));
  if (!rows) return false;
  if (!rows->empty()) return true;
  const auto again = read_keys();
  if (!again) return false;
  if (applied <= again->trimmed) return true;  // it went in between
  return fail(ENODATA, "the log in etcd does not have " + keys_.value(applied) +
                           ", which this store has: etcd was restored from a backup, or has lost what it had "
                           "acknowledged. See \"A log that went back\" in the guide");
}

Result<> LogMember::begin_at(KeyValueStore& store, const StorePosition& position) {
  Batch batch;
  put_position(batch, position);
  TRY(store.commit(batch, CommitKind::kNamespace));
  return store.sync();
}

Result<LogMember::Keys> LogMember::read_keys() {
  TRY_ASSIGN(const KeyOutcome outcome,
             server_->commit(
                 {.if_all = {{keys_.leader(), kNever}},
                  .puts = {},
                  .erases = {},
                  .otherwise_read = {keys_.identity(), keys_.leader(), keys_.renewal(), keys_.trimmed()}}));
  Keys keys;
  for (const KeyRow& row : outcome.found) {
    if (row.key == keys_.identity()) keys.identity = row.value;
    if (row.key == keys_.leader()) keys.seen.leader = row.revision;
    if (row.key == keys_.leader()) keys.seen.claim = LeadClaim::parse(row.value);
    if (row.key == keys_.renewal()) keys.seen.renewal = row.revision;
    if (row.key == keys_.trimmed()) keys.trimmed = parse_position(row.value).value_or(0);
    if (row.key == keys_.trimmed()) keys.trimmed_revision = row.revision;
  }
  return keys;
}

Result<std::optional<size_t>> LogMember::follow(Follower& follower) {
  const auto keys = read_keys();
  answered(keys ? Result<>() : std::unexpected(keys.error()));
  if (!keys) return std::nullopt;
  if (!keys->identity.starts_with(position_.identity)) {
    return fail(ENOENT, "etcd no longer has log " + position_.identity + " under " + keys_.prefix);
  }
  TRY(check_name(keys->seen));
  watch_.saw(keys->seen, options_.clock.now());
  trimmed_revision_ = keys->trimmed_revision;
  trimmed_ = keys->trimmed;
  const auto rows = server_->range(keys_.value(follower.next()), keys_.values_end(), kValuesRead);
  answered(rows ? Result<>() : std::unexpected(rows.error()));
  if (!rows) return std::nullopt;
  TRY(follower.take(*rows));
  if (rows->empty() && trimmed_ >= follower.next()) return std::unexpected(follower.missing());
  if (lead_ == 0) {
    const auto tried = std::exchange(tried_, std::nullopt);
    if (tried && keys->seen.claim == claim_) taken(keys->seen.leader, *tried);
  }
  return rows->size();
}

// Both would say in one row how much of the log they have.
Result<> LogMember::check_name(const LeadWatch::Seen& seen) {
  const KeyRevision before = std::exchange(renewal_seen_, seen.renewal);
  const bool renewed = before != 0 && seen.renewal > before;
  if (lead_ != 0 || !renewed || seen.claim.name != options_.name || seen.claim.place == options_.place)
    return {};
  return fail(EINVAL, "the server that leads has the name " + options_.name +
                          ", too: each needs one of its own in metadata_log");
}

void LogMember::try_take() {
  const LeadWatch::Seen& seen = watch_.seen();
  const SteadyTime sent = options_.clock.now();
  const auto outcome = server_->commit({.if_all = {{keys_.leader(), seen.leader},
                                                   {keys_.renewal(), seen.renewal},
                                                   {keys_.trimmed(), trimmed_revision_}},
                                        .puts = {{keys_.leader(), claim_.text()}, {keys_.renewal(), "0"}},
                                        .erases = {},
                                        .otherwise_read = {}});
  if (!outcome) {
    tried_ = sent;  // the next look tells
    return answered(std::unexpected(outcome.error()));
  }
  if (!outcome->done) return;
  if (seen.leader != 0)
    log_warning("mds", "lead-taken-over from={} what=\"it has not renewed its lead\"", seen.claim.name);
  taken(outcome->revision, sent);
}

void LogMember::taken(KeyRevision lead, SteadyTime sent) {
  lead_ = lead;
  term_.renewed(sent);
  keeper_ = std::make_unique<LeadKeeper>(
      options_.connect(), options_.clock, term_,
      LeadKeeper::Options{.keys = keys_,
                          .name = options_.name,
                          .lead = lead,
                          .trimmed = trimmed_,
                          .lost = [this, told = lifetime_.guard([this](const Error& error) {
                            lost_ = error;
                            if (on_lost_) on_lost_(error);
                          })](const Error& error) { loop_.post([told, error] { told(error); }); }});
  keeper_->durable(said_);
}

Result<> LogMember::follow_to_end(Follower& follower) {
  for (bool end = false; !end;) {
    loop_.run_once(Milliseconds(0));
    if (lost_) return std::unexpected(*lost_);
    TRY_ASSIGN(const std::optional<size_t> came, follow(follower));
    end = came && *came == 0;
  }
  return {};
}

// That it is on the medium: the log may be trimmed behind it.
Result<> LogMember::say_position(KeyValueStore& store, LogPosition position) {
  if (options_.clock.now() - said_at_ < kSayEvery || (position == said_ && said_at_ != SteadyTime()))
    return {};
  TRY(store.sync());
  said_at_ = options_.clock.now();
  const auto said = server_->commit({.if_all = {},
                                     .puts = {{keys_.member(options_.name), std::to_string(position)}},
                                     .erases = {},
                                     .otherwise_read = {}});
  if (said) said_ = position;
  return {};
}

void LogMember::answered(const Result<>& outcome) {
  if (outcome) {
    if (std::exchange(complained_, false)) log_info("mds", "etcd-answers-again");
  } else if (!std::exchange(complained_, true)) {
    log_warning("mds", "etcd-does-not-answer error=\"{}\" what=\"this server waits\"",
                outcome.error().to_string());
  }
}

std::unique_ptr<KeyValueStore> LogMember::open(std::unique_ptr<KeyValueStore> store,
                                               std::function<void(Error)> failed) {
  on_lost_ = failed;
  if (lost_) loop_.post([failed, error = *lost_] { failed(error); });
  const auto leads = [this] { return term_.holds(); };
  loop_.after(kTellEvery, lifetime_.guard([this] { tell_that_the_loop_turns(); }));
  auto writer = std::make_unique<LogWriter>(
      loop_, options_.connect(),
      LogWriter::Options{.keys = keys_,
                         .lead = lead_,
                         .position = written_,
                         .leads = leads,
                         .wrote = [this](LogPosition at, size_t bytes) { keeper_->wrote(at, bytes); }});
  return std::make_unique<ReplicatedStore>(
      loop_, std::move(store), std::move(writer),
      ReplicatedStore::Options{.position = position_,
                               .leads = leads,
                               .durable = [this](LogPosition position) { keeper_->durable(position); },
                               .failed = std::move(failed)});
}

void LogMember::tell_that_the_loop_turns() {
  keeper_->loop_turns();
  loop_.after(kTellEvery, lifetime_.guard([this] { tell_that_the_loop_turns(); }));
}

void LogMember::loop_ends() {
  if (keeper_) keeper_->loop_ends();
}

Result<std::string> place_of(const std::string& directory) {
  std::ifstream file(kBootIdPath);
  std::string boot;
  if (!std::getline(file, boot) || boot.empty()) return fail(EIO, std::string("reading ") + kBootIdPath);
  struct statx status{};
  if (::statx(AT_FDCWD, directory.c_str(), 0, STATX_INO | STATX_BTIME, &status) != 0)
    return std::unexpected(Error::from_errno("statx " + directory));
  // One that is removed and made again may have the same number.
  return fmt::format("{}-{:x}:{:x}-{:x}-{:x}.{:x}", boot, status.stx_dev_major, status.stx_dev_minor,
                     status.stx_ino, status.stx_btime.tv_sec, status.stx_btime.tv_nsec);
}

}  // namespace pnfsrdma::mds

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/log/log_member.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
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
  PositionRow renewal;
  LogPosition trimmed = 0;
  KeyRevision trimmed_revision = 0;
  uint64_t takeovers = 0;
};

LogMember::LogMember(EventLoop& loop, Random& random, Options options)
    : loop_(loop),
      random_(random),
      options_(std::move(options)),
      keys_{options_.prefix},
      claim_{options_.name, {}, options_.place, options_.copies},
      server_(options_.connect()),
      watch_(options_.place),
      last_revision_(kNever),
      presence_(*server_, keys_.member(options_.name), options_.place),
      term_(options_.clock) {}

LogMember::~LogMember() = default;

Result<bool> LogMember::lead(KeyValueStore& store, const std::function<bool()>& stopping) {
  TRY(join(store, stopping));
  if (stopping()) return false;
  // With the lead it does not wait for room: another server may have some.
  Follower follower(loop_, store, keys_, position_, [&] {
    const bool full = waits_for_room(follower);
    return stopping() || (lead_ != 0 && full);
  });
  log_info("mds", "standby name={} log={} position={}", options_.name, position_.identity,
           position_.applied.position);
  for (bool whole = false; !whole;) {
    TRY_ASSIGN(const bool has_lead, follow_until_taken(follower, store, stopping));
    if (!has_lead) return false;
    const auto followed = follow_to_end(follower, stopping);
    if (stopping()) return false;
    TRY_ASSIGN(whole, followed);
    // Paused behind its take, another server may have taken the lead from it: this one goes on as a standby.
    whole = whole && term_.holds();
    if (!whole) give_back();
  }
  follower.drop_parts();
  position_ = follower.position();
  end_ = follower.last();
  tell_status("leads the metadata's log");
  log_info("mds", "leading name={} log={} position={}", options_.name, position_.identity, end_.position);
  return true;
}

Result<bool> LogMember::follow_until_taken(Follower& follower, KeyValueStore& store,
                                           const std::function<bool()>& stopping) {
  for (bool more = false; lead_ == 0;) {
    loop_.run_once(more ? Milliseconds(0) : kPoll);
    if (stopping()) return false;
    const auto followed = follow(follower);
    if (stopping()) return false;
    TRY_ASSIGN(const std::optional<size_t> came, followed);
    TRY(say_position(store, follower.position().applied.position));
    more = came.value_or(0) > 0;
    const bool may_take = came && !more && watch_.may_take(options_.clock.now());
    if (lead_ == 0 && may_take && !waits_for_room(follower)) try_take(follower.last());
  }
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
    if (!position->joined) TRY(begin_at(store, {identity, {}}));
    position_ = {identity, position->applied};
    return check_last(position_.applied);
  }
  if (position && position->joined) {
    return fail(identity.empty() ? ENOENT : EINVAL,
                "the metadata store belongs to log " + position->identity + ", and etcd has " +
                    (identity.empty() ? "no log" : "log " + identity) + " under " + keys_.prefix +
                    ": check metadata_log, or take the store out of its log with --leave-log");
  }
  if (identity.empty()) {
    // The store knows first which log it may begin: else a crash in between would leave one that nobody may.
    const StorePosition first{position ? position->identity : random_digits(random_), {}, false};
    TRY(begin_at(store, first));
    const std::string text = first.identity + std::string(from_nothing ? kFromNothing : "");
    const auto made = server_->commit({.if_all = {{keys_.identity(), 0}},
                                       .puts = {{keys_.identity(), text}},
                                       .erases = {},
                                       .otherwise_read = {}});
    if (made && made->done) log_info("mds", "log-begun log={} prefix={}", first.identity, keys_.prefix);
    return false;  // looks again: another server may have been first
  }
  if (!from_nothing || !keys->identity.ends_with(kFromNothing)) {
    needs_copy_ = store_is_empty_ = from_nothing;
    return fail(EINVAL,
                "the log in etcd under " + keys_.prefix +
                    " began with the metadata of another server: stop that one, copy its metadata "
                    "directory to this one, and start both. (An empty one gets a copy by itself where "
                    "metadata_log.copies is set)");
  }
  position_ = {identity, {}};
  TRY(begin_at(store, position_));
  return true;
}

// That the log has the last value that this server has, and the same one: values go behind the trimmed position only.
// False: etcd does not answer. ENODATA: the log went back.
Result<bool> LogMember::check_last(const LogPoint& last) {
  if (last.position == 0) return true;
  const std::string key = keys_.value(last.position);
  const auto outcome = server_->commit({.if_all = {{key, last_revision_}},
                                        .puts = {},
                                        .erases = {},
                                        .otherwise_read = {key, keys_.trimmed()}});
  answered(outcome ? Result<>() : std::unexpected(outcome.error()));
  if (!outcome) return false;
  if (outcome->done) return true;
  for (const KeyRow& row : outcome->found) {
    if (row.key == keys_.trimmed() && parse_decimal(row.value).value_or(0) >= last.position) return true;
    if (row.key != key || hash_of(row.value) != last.hash) continue;
    last_revision_ = row.revision;
    return true;
  }
  return std::unexpected(went_back(key));
}

Result<> LogMember::begin_at(KeyValueStore& store, const StorePosition& position) {
  Batch batch;
  put_position(batch, position);
  TRY(store.commit(batch, CommitKind::kNamespace));
  return store.sync();
}

Result<LogMember::Keys> LogMember::read_keys() {
  TRY_ASSIGN(const KeyOutcome outcome,
             server_->commit({.if_all = {{keys_.leader(), kNever}},
                              .puts = {},
                              .erases = {},
                              .otherwise_read = {keys_.identity(), keys_.leader(), keys_.renewal(),
                                                 keys_.trimmed(), keys_.takeovers()}}));
  Keys keys;
  for (const KeyRow& row : outcome.found) {
    if (row.key == keys_.identity()) keys.identity = row.value;
    if (row.key == keys_.leader()) keys.seen.leader = row.revision;
    if (row.key == keys_.leader()) keys.seen.claim = LeadClaim::parse(row.value);
    if (row.key == keys_.renewal()) keys.seen.renewal = row.revision;
    if (row.key == keys_.renewal()) keys.renewal = PositionRow::parse(row.value);
    if (row.key == keys_.trimmed()) keys.trimmed = parse_decimal(row.value).value_or(0);
    if (row.key == keys_.trimmed()) keys.trimmed_revision = row.revision;
    if (row.key == keys_.takeovers()) keys.takeovers = parse_decimal(row.value).value_or(0);
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
  watch_.saw(keys->seen, options_.clock.now());
  trimmed_revision_ = keys->trimmed_revision;
  trimmed_ = keys->trimmed;
  takeovers_ = keys->takeovers;
  renewal_ = keys->renewal;
  const auto rows = server_->range(keys_.value(follower.next()), keys_.values_end(), kValuesRead);
  answered(rows ? Result<>() : std::unexpected(rows.error()));
  if (!rows) return std::nullopt;
  const bool next_is_there = !rows->empty() && rows->front().key == keys_.value(follower.next());
  if (!next_is_there && trimmed_ >= follower.next()) return std::unexpected(misses(follower));
  TRY(follower.take(*rows));
  if (rows->empty()) {
    TRY_ASSIGN(const bool sound, check_last(follower.last()));
    if (!sound) return std::nullopt;
  } else {
    last_revision_ = rows->back().revision;
  }
  if (lead_ == 0) {
    const auto tried = std::exchange(tried_, std::nullopt);
    if (tried && keys->seen.claim == claim_) taken(keys->seen.leader, *tried);
  }
  if (lead_ == 0 && presence_.due(options_.clock.now())) {
    const std::string leads = keys->seen.leader == 0 ? "nobody leads" : "follows " + keys->seen.claim.name;
    const LogPosition position = follower.last().position;
    tell_status(fmt::format("standby: {}, has the log up to {}, {} behind", leads, position,
                            std::max(renewal_.position, position) - position));
  }
  return rows->size();
}

// What comes next was trimmed, and is gone.
Error LogMember::misses(const Follower& follower) {
  needs_copy_ = lead_ == 0;
  return follower.missing();
}

Result<std::optional<std::string>> LogMember::find_copy(const std::function<bool()>& stopping) {
  const auto keys = read_keys();
  answered(keys ? Result<>() : std::unexpected(keys.error()));
  if (!keys || keys->seen.leader == 0) return std::nullopt;
  const std::string from = keys->seen.claim.copies;
  if (from.empty())
    return fail(ENOENT, keys->seen.claim.name + " leads, and gives no copies of its metadata");
  while (!presence_.is_said()) {
    if (stopping()) return std::nullopt;
    const SteadyTime now = options_.clock.now();
    if (presence_.due(now)) TRY(presence_.say(now, position_.applied.position));
    if (!presence_.is_said()) loop_.run_once(kPoll);
  }
  return from;
}

void LogMember::try_take(const LogPoint& last) {
  const LeadWatch::Seen& seen = watch_.seen();
  const SteadyTime sent = options_.clock.now();
  // What is found in the key later is of this try: an earlier one may have been done, and its time be over.
  claim_.start = random_digits(random_);
  KeyTransaction take{.if_all = {{keys_.leader(), seen.leader},
                                 {keys_.renewal(), seen.renewal},
                                 {keys_.trimmed(), trimmed_revision_}},
                      .puts = {{keys_.leader(), claim_.text()}, {keys_.renewal(), renewal_.text()}},
                      .erases = {},
                      .otherwise_read = {}};
  // Every take-over changes the leader's key, too: the count is as it was read.
  if (seen.leader != 0 && seen.claim.place != options_.place)
    take.puts.push_back({keys_.takeovers(), std::to_string(takeovers_ + 1)});
  if (last.position > trimmed_) take.if_all.push_back({keys_.value(last.position), last_revision_});
  const auto outcome = server_->commit(take);
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
  const auto told = lifetime_.guard([this, lead](const Error& error) {
    if (lead != lead_) return;  // it was given back
    lost_ = error;
    if (on_lost_) on_lost_(error);
  });
  keeper_ = std::make_unique<LeadKeeper>(
      options_.connect(), options_.clock, term_,
      LeadKeeper::Options{
          .keys = keys_,
          .name = options_.name,
          .place = options_.place,
          .lead = lead,
          .trimmed = trimmed_,
          .trimmed_revision = trimmed_revision_,
          .end = renewal_.position,
          .bytes = parse_decimal(renewal_.rest).value_or(0),
          .durable = presence_.said(),
          .lost = [this, told](const Error& error) { loop_.post([told, error] { told(error); }); }});
}

void LogMember::give_back() {
  keeper_.reset();
  term_.end();
  lead_ = 0;
}

Result<bool> LogMember::follow_to_end(Follower& follower, const std::function<bool()>& stopping) {
  for (bool answers = true;;) {
    loop_.run_once(answers ? Milliseconds(0) : kPoll);
    if (lost_) return std::unexpected(*lost_);
    const auto followed = follow(follower);
    if (stopping() || (!followed && followed.error().number() == ECANCELED)) return false;
    TRY_ASSIGN(const std::optional<size_t> came, followed);
    if (came && *came == 0) return true;
    answers = came.has_value();
  }
}

// Told once until there is some.
bool LogMember::waits_for_room(const Follower& follower) {
  const bool waits = follower.lacks_room();
  if (waits && !full_) {
    log_warning("mds",
                "standby-waits what=\"the metadata disk is full: this server neither follows nor leads\"");
    tell_status("standby: the metadata disk is full");
  } else if (!waits && full_) {
    log_info("mds", "standby-goes-on");
  }
  full_ = waits;
  return waits;
}

// That it is on the medium: the log may be trimmed behind it.
Result<> LogMember::say_position(KeyValueStore& store, LogPosition position) {
  const SteadyTime now = options_.clock.now();
  if (!presence_.due(now)) return {};
  if (position != presence_.said()) TRY(store.sync());
  return presence_.say(now, position);
}

void LogMember::tell_status(std::string what) {
  if (options_.status && what != status_) options_.status(what);
  status_ = std::move(what);
}

void LogMember::answered(const Result<>& outcome) {
  if (outcome) {
    if (std::exchange(complained_, false)) log_info("mds", "etcd-answers-again");
  } else if (!std::exchange(complained_, true)) {
    log_warning("mds", "etcd-does-not-answer error=\"{}\" what=\"this server waits\"",
                outcome.error().to_string());
    tell_status("standby: etcd does not answer");
  }
}

std::unique_ptr<KeyValueStore> LogMember::open(std::unique_ptr<KeyValueStore> store,
                                               std::function<void(Error)> failed) {
  on_lost_ = failed;
  if (lost_) loop_.post([failed, error = *lost_] { failed(error); });
  const auto leads = [this] { return term_.holds(); };
  loop_.after(kTellEvery, lifetime_.guard([this] { tell_that_the_loop_turns(); }));
  set_checkpoint(presence_.said());
  auto writer = std::make_unique<LogWriter>(
      loop_, options_.connect(),
      LogWriter::Options{.keys = keys_,
                         .lead = lead_,
                         .end = end_,
                         .leads = leads,
                         .wrote = [this](LogPosition at, size_t bytes, LatencyHistogram::Duration took) {
                           keeper_->wrote(at, bytes);
                           commits_.add(took);
                           bytes_ += bytes;
                         }});
  return std::make_unique<ReplicatedStore>(
      loop_, std::move(store), std::move(writer),
      ReplicatedStore::Options{.position = position_,
                               .leads = leads,
                               .durable = [this](LogPosition position) { set_checkpoint(position); },
                               .failed = std::move(failed)});
}

void LogMember::set_checkpoint(LogPosition position) {
  keeper_->durable(position);
  checkpoint_ = position;
  checkpoint_at_ = options_.clock.now();
}

LogMember::Costs LogMember::costs() const {
  return {.commits = commits_.snapshot(),
          .bytes = bytes_,
          .checkpoint = checkpoint_,
          .checkpoint_age = std::chrono::duration_cast<Milliseconds>(options_.clock.now() - checkpoint_at_)};
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

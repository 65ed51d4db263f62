// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "server/mds/meta/brick_records.h"
#include "tests/sim/world.h"

namespace pnfsrdma::sim {

namespace {

constexpr size_t kSnapshotsMax = 3;  // at once
constexpr size_t kNames = 5;         // so that they are used again
constexpr size_t kTriesWhenWell = 8;
constexpr auto kFreedWithin = std::chrono::seconds(20);

}  // namespace

Snapshots::Snapshots(World& world, RestartMds restart_mds)
    : world_(world), restart_mds_(std::move(restart_mds)), dice_(world.dice.next()) {
  if (!world.options.snapshots) return;
  taking_ = simulated::Thread([this] { take_some(); });
  removing_ = simulated::Thread([this] { remove_some(); });
}

Snapshots::~Snapshots() = default;

void Snapshots::pause(uint64_t least, uint64_t most) {
  const SteadyTime until = steady_now() + dice_.microseconds(least, most);
  while (!ending_ && steady_now() < until) sleep_for(Milliseconds(5));
}

void Snapshots::take_some() {
  while (!ending_) {
    pause(1000, dice_.one_in(3) ? 2000000 : 200000);
    if (ending_) return;
    size_t count = 0;
    for (const auto& known : known_) count += known->state != State::kGone ? 1 : 0;
    if (count < kSnapshotsMax) (void)take();
  }
}

void Snapshots::remove_some() {
  while (!ending_) {
    pause(1000, 3000000);
    std::vector<Known*> candidates;
    for (const auto& known : known_) {
      if (known->state == State::kThere) candidates.push_back(known.get());
    }
    if (ending_ || candidates.empty()) continue;
    remove(*candidates[dice_.below(candidates.size())]);
  }
}

void Snapshots::end() {
  if (!world_.options.snapshots) return;
  ending_ = true;
  taking_.join();
  removing_.join();
}

std::string Snapshots::new_name() {
  for (;;) {
    std::string name = "snapshot" + std::to_string(++last_name_ % kNames);
    const bool used = std::ranges::any_of(
        known_, [&](const auto& known) { return known->state != State::kGone && known->name == name; });
    if (!used) return name;
  }
}

// At any time of its work, or while the metadata is copied, or just behind that.
void Snapshots::crash_while_it_works() {
  if (ending_ || world_.options.no_faults || !dice_.one_in(5)) return;
  uint64_t most = 10;
  for (uint64_t decades = dice_.below(6); decades > 0; --decades) most *= 10;
  restart_mds_(dice_.microseconds(1, most));
}

bool Snapshots::take() {
  world_.wait_for_mds();
  Known& snapshot = *known_.emplace_back(std::make_unique<Known>());
  snapshot.name = new_name();
  snapshot.asked = world_.oracle.moment(steady_now());
  world_.trace("{} is to be taken", describe(snapshot));
  crash_while_it_works();
  const auto answer = world_.real_mds->take_snapshot(snapshot.name);
  snapshot.answered = answer ? answer->time : SteadyTime::max();
  if (!answer) {
    ++unknown;
    resolve(snapshot);
    return false;
  }
  world_.trace("{}: {}", describe(snapshot), answer->error.empty() ? "taken" : answer->error);
  if (!answer->error.empty()) {
    ++failed;
    snapshot.state = State::kGone;
    return false;
  }
  ++taken;
  world_.wait_for_mds();
  begin(snapshot, answer->number);
  return true;
}

void Snapshots::remove(Known& snapshot) {
  world_.wait_for_mds();
  check();
  snapshot.state = State::kGoing;
  world_.trace("{} is to be deleted", describe(snapshot));
  crash_while_it_works();
  const auto answer = world_.real_mds->remove_snapshot(snapshot.name);
  if (answer && answer->error.empty()) {
    ++removed;
    snapshot.state = State::kGone;
    world_.trace("{} is deleted", describe(snapshot));
    return;
  }
  if (!answer) ++unknown;
  resolve(snapshot);
}

void Snapshots::resolve(Known& snapshot) {
  world_.wait_for_mds();
  const auto ready = world_.real_mds->snapshots();
  const auto found = ready.find(snapshot.name);
  const bool is_there = found != ready.end();
  world_.trace("{} is {}", describe(snapshot), is_there ? "there" : "not there");
  if (!is_there) {
    snapshot.state = State::kGone;
  } else if (snapshot.state == State::kTaking) {
    snapshot.answered = steady_now();
    begin(snapshot, found->second);
  } else {
    snapshot.state = State::kThere;
  }
}

const ServedBrick& Snapshots::brick_of(const mds::Extent& extent) const {
  return static_cast<const ServedBrick&>(*world_.bricks.at(mds::zone_of(extent.logical)));
}

void Snapshots::begin(Known& snapshot, uint32_t number) {
  const simulated::Scheduler::Undisturbed at_once;
  snapshot.state = State::kThere;
  snapshot.number = number;
  for (const auto& [file, stored] : world_.real_mds->files_in(number)) {
    File& content = snapshot.files[file];
    content.size = stored.size;
    for (const mds::Extent& extent : stored.extents) {
      Piece& piece = content.pieces.emplace_back(Piece{extent, {}, {}});
      piece.now.resize(extent.length);
      piece.durable.resize(extent.length);
      if (!brick_of(extent).look(extent.logical, piece.now, piece.durable))
        world_.violated(
            fmt::format("{} has no memory at {} of file {}", describe(snapshot), extent.file_offset, file));
    }
  }
  check_moment(snapshot);
  check(snapshot);
}

std::vector<std::byte> Snapshots::bytes_of(const File& file, bool durable) {
  std::vector<std::byte> bytes(file.size);
  for (const Piece& piece : file.pieces) {
    if (piece.extent.file_offset >= file.size) continue;
    const uint64_t count = std::min(piece.extent.length, file.size - piece.extent.file_offset);
    std::copy_n((durable ? piece.durable : piece.now).begin(), count,
                bytes.begin() + static_cast<std::ptrdiff_t>(piece.extent.file_offset));
  }
  return bytes;
}

// Behind the loss of what a brick had it has what was durable when it was asked for. If nothing was lost since, it has
// all that others could see then, and it is of one moment: what was published before anything of it began is there.
void Snapshots::check_moment(const Known& snapshot) {
  Oracle& oracle = world_.oracle;
  const bool lost = oracle.losses() != snapshot.asked.losses;
  SteadyTime youngest = snapshot.asked.time;
  for (size_t file = 0; file < kFiles; ++file) {
    if (!snapshot.files.contains(file))
      world_.violated(fmt::format("{} has no file {}", describe(snapshot), file));
    const File& content = snapshot.files.at(file);
    oracle.check_snapshot(file, snapshot.asked.time, snapshot.answered, snapshot.asked.durable,
                          bytes_of(content, true));
    const auto bytes = bytes_of(content, false);
    oracle.check_snapshot(file, snapshot.asked.time, snapshot.answered,
                          lost ? snapshot.asked.durable : snapshot.asked.published, bytes);
    youngest = std::max(youngest, oracle.youngest(youngest, bytes));
  }
  if (lost) return;
  const Oracle::Moment then = oracle.moment(youngest);
  for (size_t file = 0; file < kFiles; ++file)
    oracle.check_snapshot(file, snapshot.asked.time, snapshot.answered, then.published,
                          bytes_of(snapshot.files.at(file), false));
}

std::string Snapshots::describe(const Known& snapshot) const {
  return fmt::format("snapshot {} \"{}\"", snapshot.number, snapshot.name);
}

Snapshots::Known* Snapshots::there(uint32_t number) {
  for (const auto& known : known_) {
    if (known->state == State::kThere && known->number == number) return known.get();
  }
  return nullptr;
}

void Snapshots::check() {
  const simulated::Scheduler::Undisturbed at_once;
  if (!world_.mds_up()) return;
  const auto ready = world_.real_mds->snapshots();
  for (const auto& [name, number] : ready) {
    const bool expected = std::ranges::any_of(known_, [&](const auto& known) {
      return known->name == name && known->state != State::kGone &&
             (known->state == State::kTaking || known->number == number);
    });
    if (!expected)
      world_.violated(fmt::format("there is a snapshot {} \"{}\" that was not taken", number, name));
  }
  for (const auto& known : known_) {
    if (known->state != State::kThere) continue;
    const auto found = ready.find(known->name);
    if (found == ready.end() || found->second != known->number)
      world_.violated(describe(*known) + " is not there any more");
    check(*known);
  }
}

void Snapshots::check(Known& snapshot) {
  const auto stored = world_.real_mds->files_in(snapshot.number);
  if (stored.size() != snapshot.files.size()) world_.violated(describe(snapshot) + " has other files now");
  for (auto& [number, file] : snapshot.files) {
    RealMds::StoredFile expected{file.size, {}};
    for (const Piece& piece : file.pieces) expected.extents.push_back(piece.extent);
    if (stored.at(number) != expected)
      world_.violated(fmt::format("{} has another file {} now", describe(snapshot), number));
    for (Piece& piece : file.pieces) check_piece(snapshot, number, piece);
  }
}

void Snapshots::check_piece(const Known& snapshot, size_t file, Piece& piece) {
  constexpr size_t kLine = ServedBrick::kLineBytes;
  const mds::Extent& extent = piece.extent;
  std::vector<std::byte> now(extent.length), durable(extent.length);
  if (!brick_of(extent).look(extent.logical, now, durable))
    world_.violated(
        fmt::format("memory of {} is free, of file {} at {}", describe(snapshot), file, extent.file_offset));
  if (brick_of(extent).writable(extent.logical, extent.length))
    world_.violated(fmt::format("a client can write memory of {}, of file {} at {}", describe(snapshot), file,
                                extent.file_offset));
  if (now == piece.now && durable == piece.durable) return;
  const auto is = [&](const std::vector<std::byte>& bytes, const std::vector<std::byte>& expected,
                      size_t at) { return std::memcmp(&bytes[at], &expected[at], kLine) == 0; };
  for (size_t at = 0; at < extent.length; at += kLine) {
    const bool known = (is(now, piece.now, at) || is(now, piece.durable, at)) &&
                       (is(durable, piece.now, at) || is(durable, piece.durable, at));
    if (!known) {
      world_.violated(fmt::format("{} has changed in file {} at unit {}", describe(snapshot), file,
                                  (extent.file_offset + at) / kUnit));
    }
  }
  piece.now = std::move(now);
  piece.durable = std::move(durable);
}

std::vector<Snapshots::Sight> Snapshots::all() {
  check();
  std::vector<Sight> sights;
  for (const auto& known : known_) {
    if (known->state != State::kThere) continue;
    for (const auto& [number, file] : known->files)
      sights.push_back({known->number, known->name, number, file});
  }
  return sights;
}

std::optional<Snapshots::Sight> Snapshots::choose(Dice& dice) {
  if (!world_.mds_up()) return std::nullopt;
  std::vector<Sight> sights = all();
  if (sights.empty()) return std::nullopt;
  return std::move(sights[dice.below(sights.size())]);
}

void Snapshots::judge(const Sight& sight, const Result<std::vector<std::byte>>& read, bool always) const {
  const std::string where =
      fmt::format("file {} of snapshot {} \"{}\"", sight.file, sight.number, sight.name);
  const bool is_there = std::ranges::any_of(known_, [&](const auto& known) {
    return known->number == sight.number && known->state == State::kThere;
  });
  if (!read) {
    const int error = read.error().number();
    if (always || (is_there && (error == ENOENT || error == ESTALE)))
      world_.violated(fmt::format("{} cannot be read: error {}", where, error));
    return;
  }
  const auto now = bytes_of(sight.content, false), durable = bytes_of(sight.content, true);
  // Another one may have the name by now.
  if (!is_there) return;
  if (read->size() != now.size())
    world_.violated(fmt::format("{} has {} bytes instead of {}", where, read->size(), now.size()));
  for (size_t at = 0; at < now.size(); at += kUnit) {
    const size_t count = std::min(kUnit, now.size() - at);
    if (std::memcmp(&(*read)[at], &now[at], count) == 0 ||
        std::memcmp(&(*read)[at], &durable[at], count) == 0)
      continue;
    world_.violated(fmt::format("{} is read with other bytes at unit {}", where, at / kUnit));
  }
}

void Snapshots::take_when_well() {
  if (!world_.options.snapshots) return;
  check();
  for (size_t tries = 0; tries < kTriesWhenWell; ++tries) {
    if (take()) return;
  }
  world_.violated("no snapshot can be taken while every server answers");
}

void Snapshots::remove_all() {
  if (!world_.options.snapshots) return;
  world_.real_mds->remove_files();
  for (;;) {
    check();
    std::vector<Known*> left;
    for (const auto& known : known_) {
      if (known->state == State::kThere) left.push_back(known.get());
    }
    if (left.empty()) break;
    Known& one = *left[dice_.below(left.size())];
    remove(one);
    if (one.state != State::kGone) world_.violated(describe(one) + " cannot be deleted");
    sleep_for(dice_.microseconds(1, 1000000));
  }
  const auto used = [&] {
    uint64_t blocks = 0;
    for (const auto& brick : world_.bricks) blocks += static_cast<const ServedBrick&>(*brick).used_blocks();
    return blocks;
  };
  const SteadyTime until = steady_now() + kFreedWithin;
  while (used() > 0 && steady_now() < until) sleep_for(Milliseconds(20));
  if (used() > 0 || world_.real_mds->held() > 0)
    world_.violated(fmt::format("{} blocks are in use without a file or a snapshot, {} bytes are held",
                                used(), world_.real_mds->held()));
}

}  // namespace pnfsrdma::sim

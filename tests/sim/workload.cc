// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <list>

#include "shared/base/sync.h"
#include "tests/sim/snapshots.h"
#include "tests/sim/world.h"

namespace pnfsrdma::sim {

namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr uint64_t kGrain = 4096;  // in which parts of files are cloned
constexpr auto kCallMax = std::chrono::seconds(5);
constexpr auto kSlow = Milliseconds(500);
constexpr size_t kWorkersPerClient = 2, kOpenMax = 3, kLogs = 2;

double milliseconds(SteadyTime::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Calls that are under way.
struct Call {
  size_t client = 0;
  std::string what;
  SteadyTime began;
};
using Calls = std::list<Call>;

// One call of an application: counted, traced, and not longer than it may be.
class Watched {
 public:
  Watched(World& world, Calls& calls, size_t client, std::string what) : world_(world), calls_(calls) {
    world_.trace("{} ...", what);
    call_ = calls_.insert(calls_.end(), {client, std::move(what), steady_now()});
    ++world_.operations;
  }
  ~Watched() { calls_.erase(call_); }
  SteadyTime began() const { return call_->began; }
  SteadyTime ended(int error) {
    const SteadyTime now = steady_now();
    if (error != 0) ++world_.errors;
    world_.trace("{} -> {}, {:.3f} ms", call_->what, error, milliseconds(now - call_->began));
    check(world_, *call_, now);
    return now;
  }
  static void check(World& world, const Call& call, SteadyTime now) {
    if (world.disturbed > 0) return;
    const auto took = now - std::max(call.began, world.calm_since);
    if (took > kCallMax)
      world.violated(
          fmt::format("{} takes {:.0f} ms, while every server answers", call.what, milliseconds(took)));
  }

 private:
  World& world_;
  Calls& calls_;
  Calls::iterator call_;
};

int number_of(const Result<>& result) {
  return result ? 0 : result.error().number();
}

// One thread of an application on one client.
class Worker {
 public:
  using OpenFile = ModelClient::OpenFile;

  Worker(World& world, size_t client, Calls& calls)
      : world_(world),
        client_(client),
        calls_(calls),
        dice_(world.dice.next()),
        buffer_(*mount().path().make_buffer(kBufferBytes)) {}

  void work() {
    while (world_.operations < world_.options.operations) {
      if (dice_.one_in(8)) sleep_for(dice_.microseconds(1, dice_.one_in(10) ? 100000 : 500));
      step();
    }
  }
  // Everything is in order at the end: a second fsync has nothing to say, nothing is refused.
  void finish() {
    for (const Place& place : written_again_) {
      open(place.file);
      (void)read(*files_.back(), place.offset, place.length);
      close_one(files_.size() - 1);
    }
    check_clone(true);
    while (!files_.empty()) {
      (void)sync(*files_.back(), false);
      if (const int error = sync(*files_.back(), false); error != 0)
        world_.violated(fmt::format("client {} file {}: fsync says error {} again", client_,
                                    files_.back()->handle.file, error));
      close_one(files_.size() - 1);
    }
    for (size_t file = 0; file < kFiles; ++file) {
      open(file);
      (void)sync(*files_.back(), false);
      if (const int error = sync(*files_.back(), false); error != 0)
        world_.violated(
            fmt::format("client {} file {}: fsync of a new open says error {} again", client_, file, error));
      close_one(0);
    }
  }
  void read_everything() {
    check_clone(true);
    if (world_.snapshots != nullptr) {
      for (const Snapshots::Sight& sight : world_.snapshots->all()) read_in_snapshot(sight, true);
    }
    for (size_t file = 0; file < kFiles; ++file) {
      open(file);
      for (uint64_t at = 0; at < kBytesMax; at += kBufferBytes) {
        if (const int error = read(*files_.back(), at, kBufferBytes); error != 0)
          world_.violated(fmt::format("client {} file {}: read at {} says error {} when all is well", client_,
                                      file, at, error));
      }
      close_one(0);
    }
  }

 private:
  ModelClient& mount() { return *world_.clients[client_]; }
  template <typename... Args>
  std::string name(const OpenFile& file, fmt::format_string<Args...> format, Args&&... args) {
    return fmt::format("client {} file {} ", client_, file.handle.file) +
           fmt::format(format, std::forward<Args>(args)...);
  }

  // The kernel's pages of before a change are gone behind it, those that were read beside it, too.
  struct ChangesPages {
    ChangesPages(ModelClient& client, const OpenFile& changed) : mount(client), file(changed.handle.file) {
      mount.pages_change(file);
    }
    ~ChangesPages() { mount.pages_change(file); }
    ChangesPages(const ChangesPages&) = delete;
    ChangesPages& operator=(const ChangesPages&) = delete;
    ModelClient& mount;
    const size_t file;
  };
  // Where something was written twice because the first time took so long.
  struct Place {
    size_t file = 0;
    uint64_t offset = 0, length = 0;
  };

  // One that this client may use.
  size_t some_file() {
    const size_t clients = world_.clients.size();
    if (world_.options.appends) return dice_.below(kLogs);
    if (world_.options.sharing != Sharing::kNone) return dice_.below(kFiles);
    return client_ + clients * dice_.below(kFiles / clients);
  }

  // A log: opened, appended to for a while, now and then read or cut, closed. So one client is at times the only one
  // that has it open.
  void step_of_log() {
    if (files_.empty()) {
      sleep_for(dice_.microseconds(1, dice_.one_in(4) ? 200000 : 2000));
      return open(some_file());
    }
    OpenFile& file = *files_.front();
    const uint64_t choice = dice_.below(100);
    if (choice < 74) return append(file, kUnit * dice_.between(1, dice_.one_in(10) ? 2048 : 100));
    if (choice < 80) return (void)read(file, kUnit * dice_.below(kBytesMax / kUnit), kBufferBytes);
    if (choice < 84) return (void)write_and_again(file, kUnit * dice_.below(kBytesMax / kUnit), kUnit);
    if (choice < 86) return truncate(file, kUnit * dice_.below(kBytesMax / 8 / kUnit));
    if (choice < 92) return (void)sync(file, dice_.one_in(2));
    close_one(0);
  }

  // Files that are opened and closed often, mostly to read; and now and then somebody changes what others hold.
  void step_of_readers() {
    const uint64_t choice = dice_.below(100);
    const size_t file = dice_.below(kFiles);
    if (choice < 8) return show_group(file);
    if (choice < 10) return set_group(file);
    if (choice < 11) return by_name(file, "rename", &ModelClient::rename);
    if (choice < 12) return by_name(file, "link", &ModelClient::link_for_a_moment);
    if (choice < 13) return mount().forget(file);
    if (files_.empty() || (choice < 34 && files_.size() < kOpenMax)) {
      // What others seldom open may be delegated to write for longer.
      if (dice_.one_in(4)) return open(2 * client_ + 1, true);
      return dice_.one_in(4) ? open(file, dice_.one_in(4)) : open(file / 2 * 2, dice_.one_in(16));
    }
    const size_t index = dice_.below(files_.size());
    OpenFile& opened = *files_[index];
    const uint64_t length = kUnit * dice_.between(1, dice_.one_in(10) ? kBufferBytes / kUnit : 300);
    const uint64_t range = length < kBytesMax / 64 && dice_.one_in(2) ? kBytesMax / 64 : kBytesMax / 16;
    const uint64_t offset = kUnit * dice_.below((range - length) / kUnit);
    if (choice < 48 && opened.writable) return write_and_again(opened, offset, length);
    if (choice < 50 && opened.writable) return append(opened, std::min<uint64_t>(length, 4096));
    if (choice < 52 && opened.writable) return truncate(opened, kUnit * dice_.below(kBytesMax / 16 / kUnit));
    if (choice < 54 && opened.writable) return punch(opened, offset, length);
    if (choice < 66) return (void)read(opened, offset, length);
    if (choice < 70) return (void)sync(opened, dice_.one_in(2));
    if (choice < 78) return lock_for_a_while(opened);
    close_one(index);
  }

  // As a program that locks, works and unlocks. Who is refused does something else.
  void lock_for_a_while(OpenFile& file) {
    constexpr uint64_t kPart = 100, kParts = 4;
    const fuse_client::LockOwner owner{fuse_client::LockOwner::Kind::kPosix, ++world_.lockers};
    const uint64_t first = kPart * dice_.below(kParts);
    const nfs4::LockRange range{first, first + (dice_.one_in(4) ? kPart * kParts : kPart) - 1,
                                file.writable && dice_.one_in(2)};
    HeldLocks::Place place;
    {
      Watched watched(world_, calls_, client_, name(file, "lock {} to {}", range.first, range.last));
      const int error = mount().lock(file, owner, range);
      (void)watched.ended(0);
      if (error != 0) return;
      const bool is_doubtful = world_.lag(client_) > SteadyTime::duration(0);
      const HeldLocks::Lock held{client_, file.inode, range, is_doubtful,
                                 world_.real_mds->delegations().revoked};
      if (const auto wrong = world_.locks.given(held, place)) world_.violated(*wrong);
    }
    sleep_for(dice_.microseconds(1, dice_.one_in(10) ? 100'000 : 3000));
    world_.locks.given_up(place);
    Watched watched(world_, calls_, client_, name(file, "unlock {} to {}", range.first, range.last));
    (void)watched.ended(mount().unlock(file, owner, range) == 0 ? 0 : EIO);
  }

  void step() {
    if (world_.snapshots != nullptr && dice_.one_in(50)) {
      if (const auto sight = world_.snapshots->choose(dice_)) return read_in_snapshot(*sight, false);
    }
    if (world_.options.appends) return step_of_log();
    if (world_.options.delegations) return step_of_readers();
    const uint64_t choice = dice_.below(100);
    if (files_.empty() || (choice < 8 && files_.size() < kOpenMax)) return open(some_file());
    const size_t index = dice_.below(files_.size());
    OpenFile& file = *files_[index];
    const uint64_t range = dice_.one_in(8) ? kBytesMax : kBytesMax / 8;
    const uint64_t length = kUnit * dice_.between(1, dice_.one_in(10) ? kBufferBytes / kUnit : 200);
    const uint64_t offset = kUnit * dice_.below((range - length) / kUnit);
    if (world_.options.clones && choice < 3) return clone(file);
    if (world_.options.clones && choice < 8) return clone_part(file, offset, length);
    if (world_.options.clones && choice < 10) return clone_out_of_snapshot();
    if (world_.options.clones && choice < 14) return check_clone();
    if (choice < 44) return write_and_again(file, offset, length);
    if (choice < 72) return (void)read(file, offset, length);
    if (choice < 78) return append(file, std::min<uint64_t>(length, 4096));
    // The model of a server knows no holes.
    if (choice == 80 && world_.real_mds && world_.options.sharing != Sharing::kNoTruncation)
      return punch(file, offset, length);
    if (choice < 81 && world_.options.sharing != Sharing::kNoTruncation)
      return truncate(file, kUnit * dice_.below(range / kUnit));
    if (choice < 91) return (void)sync(file, dice_.one_in(2));
    if (choice < 94 && world_.options.forks) return close(file);
    close_one(index);
  }

  void open(size_t file, bool writes = true) {
    Watched watched(world_, calls_, client_,
                    fmt::format("client {} file {} open{}", client_, file, writes ? "" : " to read"));
    const auto lag = world_.lag(client_);
    files_.push_back(mount().open(file, writes, world_.oracle));
    OpenFile& opened = *files_.back();
    opened.handle.opened -= lag;
    const SteadyTime ended = watched.ended(0);
    if (world_.options.delegations)
      world_.oracle.check_group(client_, file, opened.group, opened.handle.opened, ended);
  }
  void show_group(size_t file) {
    Watched watched(world_, calls_, client_, fmt::format("client {} file {} stat", client_, file));
    const uint32_t group = mount().group(file);
    world_.oracle.check_group(client_, file, group,
                              watched.began() - ClientFiles::kTimeouts.file_max - world_.lag(client_),
                              watched.ended(0));
  }
  void set_group(size_t file) {
    const ModelClient::InodeLock lock(mount(), file);
    Watched watched(world_, calls_, client_, fmt::format("client {} file {} chown", client_, file));
    const uint32_t group = world_.oracle.begin_group(file, watched.began());
    const bool done = mount().set_group(file, group);
    world_.oracle.end_group(file, group, done, watched.ended(done ? 0 : EIO));
  }
  void by_name(size_t file, const char* what, void (ModelClient::*act)(size_t)) {
    Watched watched(world_, calls_, client_, fmt::format("client {} file {} {}", client_, file, what));
    (mount().*act)(file);
    (void)watched.ended(0);
  }
  // A write that was slow went another way in the end, perhaps, and its bytes may still be on the first one: what is
  // written there next must not be written over by them.
  void write_and_again(OpenFile& file, uint64_t offset, uint64_t length) {
    if (write(file, offset, length) < kSlow) return;
    (void)write(file, offset, length);
    written_again_.push_back({file.handle.file, offset, length});
  }
  SteadyTime::duration write(OpenFile& file, uint64_t offset, uint64_t length) {
    const ModelClient::InodeLock lock(mount(), file.handle.file);
    const ChangesPages changes(mount(), file);
    Watched watched(world_, calls_, client_, name(file, "write unit {}+{}", offset / kUnit, length / kUnit));
    const auto source = buffer_->slice(0, length);
    const size_t number =
        world_.oracle.begin_write(client_, file.handle.file, offset, length, watched.began());
    world_.oracle.fill(number, source.bytes());
    // Some take their flush along, which may clear nothing that another worker writes beside it.
    constexpr std::array by_number{initiator::Stability::kDataSync, initiator::Stability::kUnstable,
                                   initiator::Stability::kUnstable};
    // (Only under a delegation, that is, by one of the workloads.)
    const auto stability = world_.options.delegations && number % 6 < 4 ? initiator::Stability::kMayBeHeld
                                                                        : by_number[number % 3];
    const auto written = file.data->write(offset, source, stability);
    const SteadyTime ended = watched.ended(written ? 0 : written.error().number());
    world_.oracle.end(number, written.has_value(), ended);
    return ended - watched.began();
  }
  void append(OpenFile& file, uint64_t length) {
    const ModelClient::InodeLock lock(mount(), file.handle.file);
    const ChangesPages changes(mount(), file);
    Watched watched(world_, calls_, client_, name(file, "append {} units", length / kUnit));
    const auto source = buffer_->slice(0, length);
    const size_t number =
        world_.oracle.begin_write(client_, file.handle.file, Oracle::kUnknown, length, watched.began());
    world_.oracle.fill(number, source.bytes());
    const auto at = mount().append(file, source);
    const SteadyTime ended = watched.ended(at ? 0 : at.error().number());
    if (at && *at + length <= 4 * kBytesMax) {
      world_.oracle.check_append(number, ended, *at);
      world_.oracle.place(number, *at);
    }
    world_.oracle.end(number, at.has_value(), ended);
  }
  int read(OpenFile& file, uint64_t offset, uint64_t length) {
    Watched watched(world_, calls_, client_, name(file, "read unit {}+{}", offset / kUnit, length / kUnit));
    const auto sink = buffer_->slice(0, length);
    std::fill_n(sink.data(), length, std::byte{0xee});
    bool kept = false;
    const auto count = mount().read(file, offset, sink, kept);
    const SteadyTime ended = watched.ended(count ? 0 : count.error().number());
    if (!count) return count.error().number();
    learn_of_losses(file);
    Oracle::Handle by = file.handle;
    by.kept = kept;
    world_.oracle.check_read(by, watched.began(), ended, offset, length, sink.bytes(), *count);
    return 0;
  }
  // What was held may be lost with a delegation, and is seen to be before a flush or close has said so.
  void learn_of_losses(OpenFile& file) {
    const initiator::ErrorCursor now = file.data->losses_from_now();
    if (now == file.known) return;
    file.known = now;
    if (!(now == file.cursor)) world_.oracle.may_be_lost(file.handle.file, &client_);
  }
  void truncate(OpenFile& file, uint64_t size) {
    const ModelClient::InodeLock lock(mount(), file.handle.file);
    const ChangesPages changes(mount(), file);
    Watched watched(world_, calls_, client_, name(file, "truncate to unit {}", size / kUnit));
    const size_t number = world_.oracle.begin_truncation(client_, file.handle.file, size, watched.began());
    bool refused = false;
    const int error = mount().truncate(file, size, refused);
    world_.oracle.end(number, error == 0, watched.ended(error), refused);
  }
  void punch(OpenFile& file, uint64_t offset, uint64_t length) {
    const ModelClient::InodeLock lock(mount(), file.handle.file);
    const ChangesPages changes(mount(), file);
    Watched watched(world_, calls_, client_, name(file, "punch unit {}+{}", offset / kUnit, length / kUnit));
    const size_t number =
        world_.oracle.begin_hole(client_, file.handle.file, offset, length, watched.began());
    bool refused = false;
    const int error = mount().punch(file, offset, length, refused);
    world_.oracle.end(number, error == 0, watched.ended(error), refused);
  }
  // The clone is durable at once, as what a read of the file at that time could have shown.
  void clone(OpenFile& file) {
    const size_t target = clone_of(client_);
    const ModelClient::InodeLock target_lock(mount(), target);
    const ModelClient::InodeLock lock(mount(), file.handle.file);
    world_.clones.erase(client_);
    // What a brick loses is written again to the file, but not to the clone.
    if (sync(file, true) != 0) return;
    Watched watched(world_, calls_, client_, name(file, "clone"));
    const int error = mount().clone(file, target);
    const SteadyTime ended = watched.ended(error);
    if (error != 0 && error != EDQUOT) return;
    auto content = mount().contents(target);
    if (!content) return;
    // All or nothing. (All: an answer was lost, and there is no room for it again.)
    if (error != 0 && content->empty()) {
      world_.clones[client_].clear();
      return;
    }
    for (uint64_t at = 0; at < kBytesMax; at += kBufferBytes) {
      const size_t from = std::min<uint64_t>(at, content->size());
      const ByteSpan bytes = ByteSpan(*content).subspan(from, std::min(content->size() - from, kBufferBytes));
      world_.oracle.check_read(file.handle, watched.began(), ended, at, kBufferBytes, bytes, bytes.size());
    }
    world_.clones[client_] = *std::move(content);
  }
  // Into what the client has cloned before: the part is the file's, the rest is as it was.
  void clone_part(OpenFile& file, uint64_t offset, uint64_t length) {
    const size_t target = clone_of(client_);
    const ModelClient::InodeLock target_lock(mount(), target);
    const ModelClient::InodeLock lock(mount(), file.handle.file);
    const auto known = world_.clones.find(client_);
    if (known == world_.clones.end()) return;
    const ModelClient::Part part{.from = offset / kGrain * kGrain,
                                 .to = dice_.below(kBytesMax / kGrain / 2) * kGrain,
                                 .count = std::min(kBufferBytes, (length / kGrain + 1) * kGrain)};
    std::vector<std::byte> expected = std::move(known->second);
    world_.clones.erase(known);
    if (sync(file, true) != 0) return;
    Watched watched(
        world_, calls_, client_,
        name(file, "clone of grain {}+{} to {}", part.from / kGrain, part.count / kGrain, part.to / kGrain));
    const int error = mount().clone_part(file, target, part);
    const SteadyTime ended = watched.ended(error);
    // Not all of the range is in the file.
    if (error == EINVAL) world_.clones[client_] = std::move(expected);
    if (error != 0 && error != EDQUOT) return;
    auto content = mount().contents(target);
    if (!content) return;
    if (error != 0 && *content == expected) {
      world_.clones[client_] = std::move(expected);
      return;
    }
    if (expected.size() < part.to + part.count) expected.resize(part.to + part.count);
    if (content->size() != expected.size()) {
      world_.violated(fmt::format("the clone of client {} has {} bytes instead of {}", client_,
                                  content->size(), expected.size()));
      return;
    }
    const ByteSpan cloned = ByteSpan(*content).subspan(part.to, part.count);
    world_.oracle.check_read(file.handle, watched.began(), ended, part.from, part.count, cloned, part.count);
    std::ranges::copy(cloned, expected.begin() + static_cast<ptrdiff_t>(part.to));
    if (*content != expected)
      world_.violated(fmt::format("a clone of a part has changed the rest at client {}", client_));
    world_.clones[client_] = *std::move(content);
  }
  // It is what the snapshot has, and stays that when the snapshot goes.
  void clone_out_of_snapshot() {
    if (world_.snapshots == nullptr) return;
    const auto sight = world_.snapshots->choose(dice_);
    if (!sight) return;
    const size_t target = clone_of(client_);
    const ModelClient::InodeLock target_lock(mount(), target);
    world_.clones.erase(client_);
    Watched watched(
        world_, calls_, client_,
        fmt::format("client {} clones file {} out of snapshot {}", client_, sight->file, sight->number));
    const int error = mount().clone_out_of(sight->name, sight->file, target);
    (void)watched.ended(error);
    if (error != 0 && error != EDQUOT) return;
    auto content = mount().contents(target);
    if (!content) return;
    if (error != 0 && content->empty()) {
      world_.clones[client_].clear();
      return;
    }
    world_.snapshots->judge(*sight, content, false);
    world_.clones[client_] = *std::move(content);
  }
  // `always`: every server answers.
  void check_clone(bool always = false) {
    if (!world_.options.clones) return;
    const ModelClient::InodeLock lock(mount(), clone_of(client_));
    if (!world_.clones.contains(client_)) return;
    Watched watched(world_, calls_, client_, fmt::format("client {} looks at its clone", client_));
    const auto content = mount().contents(clone_of(client_));
    (void)watched.ended(content ? 0 : content.error().number());
    if (!content && always) world_.violated(fmt::format("client {} cannot read its clone", client_));
    if (content && *content != world_.clones.at(client_))
      world_.violated(fmt::format("the clone of client {} has changed", client_));
  }
  void read_in_snapshot(const Snapshots::Sight& sight, bool always) {
    const bool by_layout = dice_.one_in(2);
    Watched watched(world_, calls_, client_,
                    fmt::format("client {} reads file {} of snapshot {}{}", client_, sight.file, sight.number,
                                by_layout ? ", by layout" : ""));
    const auto read = mount().contents_in(sight.name, sight.file, by_layout, buffer_->slice(0, kBufferBytes));
    (void)watched.ended(read ? 0 : read.error().number());
    if (read) ++world_.snapshot_counts.read;
    world_.snapshots->judge(sight, read, always);
  }
  int sync(OpenFile& file, bool data_only) {
    Watched watched(world_, calls_, client_, name(file, "{}", data_only ? "fdatasync" : "fsync"));
    world_.oracle.begin_sync(file.handle, watched.began());
    const int error =
        number_of(data_only ? file.data->fdatasync(file.cursor) : file.data->fsync(file.cursor));
    world_.oracle.synced(file.handle, watched.began(), watched.ended(error), error == 0);
    return error;
  }
  void close(OpenFile& file) {
    Watched watched(world_, calls_, client_, name(file, "close"));
    world_.oracle.begin_sync(file.handle, watched.began());
    const int error = number_of(file.data->close(file.cursor));
    world_.oracle.closed(file.handle, watched.began(), watched.ended(error), error == 0);
  }
  void close_one(size_t index) {
    close(*files_[index]);
    auto file = std::move(files_[index]);
    files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(index));
    Watched watched(world_, calls_, client_, name(*file, "release"));
    mount().release(std::move(file));
    (void)watched.ended(0);
  }

  World& world_;
  const size_t client_;
  Calls& calls_;
  Dice dice_;
  std::unique_ptr<initiator::Buffer> buffer_;
  std::vector<std::unique_ptr<OpenFile>> files_;
  std::vector<Place> written_again_;
};

// All of a client at once, on its host.
using Workers = std::vector<std::unique_ptr<Worker>>;
void each_of(const World& world, size_t client, Workers& workers, void (Worker::*what)()) {
  std::vector<simulated::Thread> threads;
  for (auto& worker : workers) {
    const simulated::Scheduler::OnHost on_host(world.clients[client]->host());
    threads.emplace_back([one = worker.get(), what] { (one->*what)(); });
  }
  for (auto& thread : threads) thread.join();
}

void mount(ModelClient& client) {
  simulated::Thread thread;
  {
    const simulated::Scheduler::OnHost on_host(client.host());
    thread = simulated::Thread([&client] { client.mount(); });
  }
  thread.join();
}

// The applications of one client, which start again when it does.
void work_on(World& world, size_t client, Calls& calls, Workers& workers) {
  for (;;) {
    const uint64_t host = world.clients[client]->host();
    mount(*world.clients[client]);
    if (simulated::Scheduler::current().alive(host)) {
      for (size_t i = 0; i < kWorkersPerClient; ++i)
        workers.push_back(std::make_unique<Worker>(world, client, calls));
      each_of(world, client, workers, &Worker::work);
    }
    if (simulated::Scheduler::current().alive(host)) return;
    // Nobody is left to take them apart.
    for (auto& worker : workers) (void)worker.release();
    workers.clear();
    std::erase_if(calls, [&](const Call& call) { return call.client == client; });
    while (world.clients[client]->host() == host)
      (void)world.started.wait(SteadyTime::max(), "a client to start again");
  }
}

void each(World& world, const std::function<void(size_t)>& body) {
  std::vector<simulated::Thread> threads;
  for (size_t client = 0; client < world.clients.size(); ++client)
    threads.emplace_back([&body, client] { body(client); });
  for (auto& thread : threads) thread.join();
}

// The power of everything fails; what was synced is there.
void fail_power(World& world) {
  for (size_t i = 0; i < world.bricks.size(); ++i) world.stop_brick(i, true);
  world.stop_mds(true);
  for (size_t i = 0; i < world.bricks.size(); ++i) world.start_brick(i);
  world.start_mds();
  world.calm_since = steady_now();
}

// They die, and nobody waits for their leases.
void end_clients(World& world, std::vector<Workers>& workers) {
  for (size_t client = 0; client < world.clients.size(); ++client) {
    for (auto& worker : workers[client]) (void)worker.release();
    workers[client].clear();
    world.crash(client);
    world.expire(client);
    (void)world.clients[client].release();
  }
}

}  // namespace

void run_workload(World& world) {
  Calls calls;
  std::vector<Workers> workers(world.clients.size());
  bool ended = false;
  simulated::Thread watchdog([&] {
    while (!ended) {
      sleep_for(Milliseconds(500));
      for (const Call& call : calls) Watched::check(world, call, steady_now());
    }
  });
  Faults faults(world);
  Snapshots snapshots(world, [&](SteadyTime::duration time) { faults.restart_mds_in(time); });
  if (world.options.snapshots) world.snapshots = &snapshots;
  each(world, [&](size_t client) { work_on(world, client, calls, workers[client]); });
  snapshots.end();
  faults.end();
  world.calm_since = steady_now();
  world.trace("everything is well now");
  sleep_for(std::chrono::seconds(1));
  snapshots.take_when_well();
  each(world, [&](size_t client) { each_of(world, client, workers[client], &Worker::finish); });
  fail_power(world);
  world.trace("after the loss of power");
  sleep_for(std::chrono::seconds(1));
  each(world, [&](size_t client) { each_of(world, client, workers[client], &Worker::read_everything); });
  ended = true;
  sleep_for(std::chrono::seconds(1));
  if (world.server) world.server->check_settled();
  watchdog.join();
  if (!world.options.snapshots) return;
  end_clients(world, workers);
  snapshots.remove_all();
  world.snapshots = nullptr;
  world.snapshot_counts.taken = snapshots.taken;
  world.snapshot_counts.failed = snapshots.failed;
  world.snapshot_counts.removed = snapshots.removed;
  world.snapshot_counts.unknown = snapshots.unknown;
}

}  // namespace pnfsrdma::sim

// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/watcher.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

namespace pnfsrdma::initiator {

namespace {

using brick::WatchCall;
using brick::WatchReply;
using brick::WatchStatus;

// Pieces of memory in which what is watched may lie: more would take too much of what a brick keeps for one client.
constexpr size_t kWatchedPiecesMax = 64;
constexpr int kCoverTriesMax = 5;
constexpr Milliseconds kCoverPatience = std::chrono::seconds(2);
constexpr Milliseconds kAgainFirst{10}, kAgainLast{1000};
// While something is not watched that somebody may signal, the program is told so often.
constexpr Milliseconds kTellAgain{1000};
// Where there was no memory behind the end of the file the server is asked again so seldom, unless the file has grown.
constexpr Milliseconds kAskBehindEnd = std::chrono::seconds(10);

}  // namespace

// What one brick watches of the range under one grant.
class Watcher::Piece final : public EventSink {
 public:
  // `again`: what was signalled before was told to nobody, so a gap is the first that the program hears of it.
  Piece(std::weak_ptr<Cover> cover, std::shared_ptr<Connection> connection, FileRange range, uint64_t number,
        bool again)
      : range(range),
        number(number),
        connection(std::move(connection)),
        cover_(std::move(cover)),
        owes_gap_(again) {}

  void told(const brick::Event& event) override;
  void ended() override;
  // The brick has said so. False: it has ended already.
  bool begun();
  bool alive() const { return state_ != State::kEnded; }

  const FileRange range;
  const uint64_t number;
  const std::shared_ptr<Connection> connection;

 private:
  enum class State : uint8_t { kAsked, kWatched, kEnded };
  void pay_gap(Cover& cover);

  const std::weak_ptr<Cover> cover_;
  std::atomic<State> state_ = State::kAsked;
  Mutex mutex_;  // of what is told one comes behind the other
  bool owes_gap_;
};

// All pieces of one watch. Tasks hold it while they run, the Watch as long as it lives.
class Watcher::Cover : public std::enable_shared_from_this<Cover> {
 public:
  Cover(const Watcher& watcher, FileRange range, const std::shared_ptr<Watch>& watch)
      : file_(watcher.file_),
        layouts_(watcher.layouts_),
        watching_(watcher.watching_),
        alive_(watcher.file_.shared_from_this()),
        range_(range),
        watch_(watch) {}
  ~Cover();

  Result<> begin();
  void tell(const WatchEvent& event) {
    if (const auto watch = watch_.lock()) watch->tell(event);
  }
  // A piece has ended.
  void lost();

 private:
  // What is missing. kHole: where there is no memory. There nothing is signalled before the server has granted some,
  // and whoever finds that watches it, behind a gap. kMore: somebody may signal there.
  enum class Missing : uint8_t { kNothing, kHole, kMore };
  enum class Watched : uint8_t { kYes, kAnotherTime, kSilent };
  // Of one turn.
  struct Outcome {
    Missing missing = Missing::kNothing;
    size_t begun = 0;
    std::optional<Error> error;          // the first that another turn does not mend by itself
    std::vector<const Device*> refused;  // what has not answered, or refuses: not asked again in this turn
    bool ungranted = false;              // nor is the server, which has granted nothing

    void lacks(Missing what) { missing = std::max(missing, what); }
  };

  Outcome cover();
  void cover(FileRange gap, Outcome& outcome);
  void cover(const LayoutSegment& segment, Outcome& outcome);
  bool acquire(uint64_t offset, uint64_t length, Outcome& outcome);
  std::vector<FileRange> gaps();
  Result<Watched> watch(const LayoutSegment& segment);
  void retry();
  void tell_again();
  // With the mutex.
  void again(bool soon);
  void lack();

  FileState& file_;
  LayoutGetter& layouts_;
  Watching& watching_;
  const std::shared_ptr<FileState> alive_;
  const FileRange range_;
  const std::weak_ptr<Watch> watch_;
  SteadyTime ask_behind_end_{};  // by the one thread that covers

  Mutex mutex_;  // everything below
  std::vector<std::shared_ptr<Piece>> pieces_;
  bool ready_ = false;  // the program has it
  bool posted_ = false;
  Milliseconds pause_ = kAgainFirst;
  bool lacking_ = false;  // something that may be signalled is not watched
  bool telling_ = false;  // the task that says so is posted
};

// Behind the brick's answer, or behind an event, which says the same.
void Watcher::Piece::pay_gap(Cover& cover) {
  if (std::exchange(owes_gap_, false)) cover.tell({.kind = WatchEvent::Kind::kGapLost});
}

bool Watcher::Piece::begun() {
  State asked = State::kAsked;
  if (!state_.compare_exchange_strong(asked, State::kWatched)) return false;
  const std::lock_guard lock(mutex_);
  if (const auto cover = cover_.lock()) pay_gap(*cover);
  return true;
}

void Watcher::Piece::told(const brick::Event& event) {
  const auto cover = cover_.lock();
  if (!cover) return;
  const std::lock_guard lock(mutex_);
  pay_gap(*cover);
  const bool inside = event.offset <= range.length && event.length <= range.length - event.offset;
  if (event.kind == brick::EventKind::kSignal && inside)
    return cover->tell({.offset = range.offset + event.offset, .length = event.length, .value = event.value});
  cover->tell({.kind = WatchEvent::Kind::kGapSlow});
}

void Watcher::Piece::ended() {
  if (state_.exchange(State::kEnded) != State::kWatched) return;
  if (const auto cover = cover_.lock()) cover->lost();
}

// The brick is told, too, by the thread that may wait.
Watcher::Cover::~Cover() {
  std::vector<std::shared_ptr<Piece>> watched;
  for (auto& piece : pieces_) {
    piece->connection->events.remove(piece->number);
    if (piece->alive()) watched.push_back(std::move(piece));
  }
  if (watched.empty()) return;
  watching_.after(Milliseconds(0), [watched = std::move(watched), timeout = file_.fabric.options.io_timeout] {
    for (const auto& piece : watched) {
      if (piece->connection->queue_pair.connected())
        (void)piece->connection->queue_pair.ask<WatchReply>(WatchCall{.watch = piece->number},
                                                            steady_now() + timeout);
    }
  });
}

Result<> Watcher::Cover::begin() {
  const SteadyTime deadline = file_.fabric.now() + kCoverPatience;
  for (;;) {
    const Outcome outcome = cover();
    if (outcome.error) return std::unexpected(*outcome.error);
    if (outcome.missing != Missing::kMore) break;
    if (file_.patience.rest_of_brick(deadline)) continue;
    TRY(file_.patience.still_wanted("a watch"));
    return fail(EAGAIN, "the server grants no memory of the file just now, or its brick does not answer");
  }
  const bool whole = gaps().empty();
  const std::lock_guard lock(mutex_);
  ready_ = true;
  // What was lost meanwhile could post nothing.
  if (lacking_ || !whole) again(true);
  return {};
}

void Watcher::Cover::lost() {
  tell({.kind = WatchEvent::Kind::kGapLost});
  const std::lock_guard lock(mutex_);
  lack();
  if (ready_) again(true);
}

void Watcher::Cover::again(bool soon) {
  if (soon) pause_ = kAgainFirst;
  if (std::exchange(posted_, true)) return;
  const Milliseconds pause = pause_;
  pause_ = std::min(2 * pause_, kAgainLast);
  watching_.after(pause, [cover = weak_from_this()] {
    if (const auto here = cover.lock()) here->retry();
  });
}

void Watcher::Cover::retry() {
  {
    const std::lock_guard lock(mutex_);
    posted_ = false;
  }
  if (file_.fabric.aborted || watch_.expired()) return;
  const Outcome outcome = cover();
  const std::lock_guard lock(mutex_);
  // What was lost meanwhile has posted another turn.
  const bool lacking = outcome.missing == Missing::kMore || posted_;
  // What is watched again has told its own.
  if (lacking != lacking_ && outcome.missing != Missing::kNothing) tell({.kind = WatchEvent::Kind::kGapLost});
  lacking_ = lacking;
  if (lacking) lack();
  if (outcome.missing != Missing::kNothing) again(outcome.begun > 0);
}

// From now on the program hears of a gap now and then, however long the thread that watches again has to wait.
void Watcher::Cover::lack() {
  lacking_ = true;
  if (std::exchange(telling_, true)) return;
  watching_.tell_after(kTellAgain, [cover = weak_from_this()] {
    if (const auto here = cover.lock()) here->tell_again();
  });
}

void Watcher::Cover::tell_again() {
  const std::lock_guard lock(mutex_);
  telling_ = false;
  if (!lacking_ || file_.fabric.aborted || watch_.expired()) return;
  tell({.kind = WatchEvent::Kind::kGapLost});
  lack();
}

std::vector<FileRange> Watcher::Cover::gaps() {
  const std::lock_guard lock(mutex_);
  for (const auto& piece : pieces_) {
    if (!piece->alive()) piece->connection->events.remove(piece->number);
  }
  std::erase_if(pieces_, [](const auto& piece) { return !piece->alive(); });
  std::ranges::sort(pieces_, {}, [](const auto& piece) { return piece->range.offset; });
  std::vector<FileRange> gaps;
  uint64_t at = range_.offset;
  for (const auto& piece : pieces_) {
    if (piece->range.offset > at) gaps.push_back({at, piece->range.offset - at});
    at = std::max(at, piece->range.end());
  }
  if (at < range_.end()) gaps.push_back({at, range_.end() - at});
  return gaps;
}

// What fails is no hindrance for what lies elsewhere.
Watcher::Cover::Outcome Watcher::Cover::cover() {
  Outcome outcome;
  for (const FileRange& gap : gaps()) cover(gap, outcome);
  return outcome;
}

void Watcher::Cover::cover(FileRange gap, Outcome& outcome) {
  int granted = 0;
  for (uint64_t at = gap.offset; at < gap.end();) {
    std::vector<LayoutSegment> segments;
    {
      LayoutPin pin;
      const auto entry = file_.cache.enter(pin, at, gap.end() - at, false, file_.layouts.epoch);
      if (entry == LayoutCache::Entry::kEntered) {
        segments.assign(pin.pieces().begin(), pin.pieces().end());
        // Not held while the brick is asked: a grant that ends meanwhile ends what is watched under it.
        file_.cache.leave(pin);
      } else {
        const bool ask = entry == LayoutCache::Entry::kMissing && granted < kCoverTriesMax;
        if (ask && acquire(at, gap.end() - at, outcome)) {
          ++granted;
          continue;
        }
        outcome.lacks(at < file_.size() || file_.cache.paused(file_.fabric.now()) ? Missing::kMore
                                                                                  : Missing::kHole);
        at = file_.cache.next_held(at);
        granted = 0;
        continue;
      }
    }
    granted = 0;
    for (const LayoutSegment& segment : segments) cover(segment, outcome);
    at = segments.back().end();
  }
}

// Behind the end there is nothing to be had, and seldom asked for: the file may have grown again unheard.
bool Watcher::Cover::acquire(uint64_t offset, uint64_t length, Outcome& outcome) {
  const SteadyTime now = file_.fabric.now();
  if (outcome.ungranted || file_.cache.paused(now)) return false;
  const bool behind_end = offset >= file_.size();
  if (behind_end && now < ask_behind_end_) return false;
  if (layouts_.acquire(Direction::kRead, offset, length)) return true;
  if (behind_end) ask_behind_end_ = now + kAskBehindEnd;
  outcome.ungranted = true;
  return false;
}

void Watcher::Cover::cover(const LayoutSegment& segment, Outcome& outcome) {
  if (segment.hole()) return outcome.lacks(Missing::kHole);
  if (std::ranges::find(outcome.refused, segment.device) == outcome.refused.end()) {
    const auto watched = watch(segment);
    if (watched && *watched == Watched::kYes) {
      ++outcome.begun;
      return;
    }
    if (!watched && !outcome.error) outcome.error = watched.error();
    if (!watched || *watched == Watched::kSilent) outcome.refused.push_back(segment.device);
  }
  outcome.lacks(Missing::kMore);
}

Result<Watcher::Cover::Watched> Watcher::Cover::watch(const LayoutSegment& segment) {
  bool again = false;
  {
    const std::lock_guard lock(mutex_);
    again = ready_;
    if (pieces_.size() >= kWatchedPiecesMax)
      return fail(ENOSPC, "the range lies in more than 64 pieces of memory");
  }
  const auto connected = segment.device->connect();
  if (!connected) return Watched::kSilent;
  const std::shared_ptr<Connection>& connection = *connected;
  if ((connection->said.understands & brick::kUnderstandsEvents) == 0)
    return fail(ENOTSUP, "the brick is of a version that tells no events");
  rdma::RemoteSlice memory;
  if (segment.incarnation != connection->incarnation ||
      connection->resolve(segment.generation, segment.read, segment.skip + segment.length, memory) ==
          Connection::Lookup::kDead) {
    file_.cache.drop_grant(segment.read.grant);
    return Watched::kAnotherTime;
  }
  if (!file_.fabric.events.add(connection)) return fail(EMFILE, "there are no descriptors to sleep on");
  const auto piece =
      std::make_shared<Piece>(weak_from_this(), connection, FileRange{segment.offset, segment.length},
                              watching_.next_number(), again);
  connection->events.add(piece->number, piece);
  file_.fabric.statistics.rdma_round_trips.add();
  const auto reply = connection->queue_pair.ask<WatchReply>(WatchCall{.watch = piece->number,
                                                                      .grant = segment.read.grant,
                                                                      .offset = segment.skip,
                                                                      .length = segment.length},
                                                            file_.fabric.io_deadline());
  if (reply && reply->status == WatchStatus::kOk && connection->events.ask() && piece->begun()) {
    // Here, so that nobody's sleep begins before the call for events is on its way.
    (void)connection->queue_pair.poll(file_.fabric.now());
    const std::lock_guard lock(mutex_);
    pieces_.push_back(piece);
    return Watched::kYes;
  }
  connection->events.remove(piece->number);
  if (!reply) {
    segment.device->lost(connection);
    return Watched::kSilent;
  }
  if (reply->status == WatchStatus::kUnknownGrant) file_.cache.drop_grant(segment.read.grant);
  if (reply->status == WatchStatus::kLimit)
    return fail(ENOSPC, "the brick keeps no more watches of this client");
  return Watched::kAnotherTime;
}

Result<std::shared_ptr<Watch>> Watcher::watch(FileRange range) {
  if (!file_.fabric.options.layouts) return fail(ENOTSUP, "this file's data does not go by RDMA");
  if (range.length == 0) return fail(EINVAL, "nothing to watch");
  if (range.offset > file_.size() || range.length > file_.size() - range.offset)
    return fail(EINVAL, "the file ends before the end of the range");
  TRY_ASSIGN(std::shared_ptr<Watch> watch, Watch::make());
  const auto cover = std::make_shared<Cover>(*this, range, watch);
  TRY(cover->begin());
  watch->keep(cover);
  return watch;
}

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/bricks/brick_jobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/mds/meta/block_runs.h"

namespace pnfsrdma::mds {

namespace {

// Blocks one call erases: their table lines are flushed together.
constexpr uint64_t kErasedPerCall = 4096;
constexpr Milliseconds kLookForZeroed{500};
constexpr double kEraseShare = 0.1;  // of the progress; the rest is zeroing

// What both jobs are made of: a brick that may go away, and somebody who may cancel.
class Job : public std::enable_shared_from_this<Job> {
 public:
  Job(EventLoop& loop, BrickSet& bricks, BrickNumber number, BrickJobEvents events)
      : loop_(loop), bricks_(bricks), number_(number), events_(std::move(events)) {}
  virtual ~Job() = default;

  void begin() {
    loop_.post([self = shared_from_this()] { self->step(); });
  }
  void cancel() {
    if (events_.on_end) end(fail(ECANCELED, "cancelled"));
  }

 protected:
  // One piece of the work.
  virtual void run(BrickDevice& brick) = 0;
  // Whatever the end is.
  virtual void clean_up() {}

  void step() {
    if (!events_.on_end) return;
    BrickDevice* const brick = bricks_.find(number_);
    if (brick == nullptr) return end(fail(ENOENT, "the brick was removed"));
    if (!brick->ready()) return end(fail(EAGAIN, "the brick is not ready: " + brick->detail()));
    run(*brick);
  }
  void step_after(Milliseconds delay) {
    loop_.after(delay, [self = shared_from_this()] { self->step(); });
  }
  void tell(double progress, const std::string& message) {
    if (events_.on_progress) events_.on_progress(std::min(progress, 1.0), message);
  }
  void end(Result<std::string> outcome) {
    if (!events_.on_end) return;
    clean_up();
    std::exchange(events_.on_end, nullptr)(std::move(outcome));
  }
  // False: the answer ends the job.
  template <typename T>
  bool goes_on(const BrickDevice::Answer<T>& answer) {
    if (!events_.on_end) return false;
    if (answer) return true;
    const bool away = answer.error() == brick::Status::kTryLater;
    const auto number = static_cast<uint32_t>(answer.error());
    end(away ? fail(EAGAIN, "the brick went away")
             : fail(EIO, fmt::format("the brick answered status {}", number)));
    return false;
  }

  EventLoop& loop_;
  BrickSet& bricks_;
  const BrickNumber number_;

 private:
  BrickJobEvents events_;
};

class Format final : public Job {
 public:
  using Job::Job;

 private:
  void run(BrickDevice& brick) override {
    if (!closed_) {
      if (const Result<> unused = brick.space().check_unused(); !unused)
        return end(std::unexpected(unused.error()));
      closed_ = true;
      bricks_.set_closed(number_, true);
    }
    const uint64_t blocks = brick.identity().block_count;
    const uint64_t count = std::min(kErasedPerCall, blocks - next_);
    if (count == 0) return wait_for_zeros(brick);
    brick.erase(
        next_, count,
        [this, self = shared_from_this(), count, blocks](BrickDevice::Answer<brick::StatusResult> erased) {
          if (!erased && erased.error() == brick::Status::kBusy)
            return end(fail(EBUSY, "the brick has blocks in use"));
          if (!goes_on(erased)) return;
          next_ += count;
          tell(kEraseShare * static_cast<double>(next_) / static_cast<double>(blocks),
               fmt::format("{} of {} blocks erased", next_, blocks));
          step();
        });
  }
  void wait_for_zeros(BrickDevice& brick) {
    brick.statistics([this, self = shared_from_this()](BrickDevice::Answer<brick::StatisticsResult> now) {
      if (!goes_on(now)) return;
      const uint64_t blocks = now->block_count - now->damaged_blocks;
      if (now->clean_blocks >= blocks)
        return end(fmt::format("{} blocks erased and zeroed", now->clean_blocks));
      tell(kEraseShare +
               (1 - kEraseShare) * static_cast<double>(now->clean_blocks) / static_cast<double>(blocks),
           fmt::format("{} of {} blocks zeroed", now->clean_blocks, blocks));
      step_after(kLookForZeroed);
    });
  }
  void clean_up() override {
    if (closed_ && bricks_.find(number_) != nullptr) bricks_.set_closed(number_, false);
  }

  uint64_t next_ = 0;
  bool closed_ = false;
};

class Check final : public Job {
 public:
  using Job::Job;

 private:
  void run(BrickDevice& brick) override {
    brick.list({next_, brick::kListedRunsPerCall},
               [this, self = shared_from_this(), &brick](BrickDevice::Answer<brick::ListResult> page) {
                 if (!goes_on(page)) return;
                 for (const brick::ListedRun& entry : page->runs) {
                   listed_.push_back(entry.run);
                   next_ = entry.run.logical + entry.run.count * brick::kBlockSize;
                   seen_ += entry.run.count;
                 }
                 const auto all = static_cast<double>(std::max<uint64_t>(brick.space().used_blocks(), 1));
                 tell((round_ + std::min(1.0, static_cast<double>(seen_) / all)) / 2,
                      fmt::format("{} blocks listed", seen_));
                 if (!page->end && !page->runs.empty()) return step();
                 compare(brick);
               });
  }
  void compare(BrickDevice& brick) {
    SpaceDifference now = brick.space().compare(listed_);
    if (round_ == 0) {
      // Allocations and frees under way differ, too: but not for long.
      first_ = std::move(now);
      round_ = 1;
      next_ = seen_ = 0;
      listed_.clear();
      return step_after(kCheckPause);
    }
    const uint64_t leaked = in_both(first_.leaked, now.leaked);
    const uint64_t missing = in_both(first_.missing, now.missing);
    brick.statistics([this, self = shared_from_this(), leaked,
                      missing](BrickDevice::Answer<brick::StatisticsResult> statistics) {
      if (!goes_on(statistics)) return;
      const uint64_t damaged = statistics->damaged_blocks;
      const std::string found =
          fmt::format("{} blocks in use, {} missing{}, {} in no file, {} damaged", seen_, missing,
                      missing > 0 ? " (files have lost data)" : "", leaked, damaged);
      if (leaked + missing + damaged > 0) return end(fail(EUCLEAN, found));
      end(found);
    });
  }
  static uint64_t in_both(const std::vector<brick::Run>& first, const std::vector<brick::Run>& second) {
    BlockRuns a;
    for (const brick::Run& run : first) a.insert(run.logical / brick::kBlockSize, run.count);
    uint64_t count = 0;
    for (const brick::Run& run : second) {
      for (uint64_t i = 0; i < run.count; ++i)
        count += a.contains(run.logical / brick::kBlockSize + i) ? 1 : 0;
    }
    return count;
  }

  uint64_t next_ = 0;
  uint64_t seen_ = 0;
  int round_ = 0;
  std::vector<brick::Run> listed_;
  SpaceDifference first_;
};

template <typename Kind>
CancelJob start(EventLoop& loop, BrickSet& bricks, BrickNumber number, BrickJobEvents events) {
  const auto job = std::make_shared<Kind>(loop, bricks, number, std::move(events));
  job->begin();
  return [weak = std::weak_ptr<Job>(job)] {
    if (const auto running = weak.lock()) running->cancel();
  };
}

}  // namespace

CancelJob format_brick(EventLoop& loop, BrickSet& bricks, BrickNumber number, BrickJobEvents events) {
  return start<Format>(loop, bricks, number, std::move(events));
}

CancelJob check_brick(EventLoop& loop, BrickSet& bricks, BrickNumber number, BrickJobEvents events) {
  return start<Check>(loop, bricks, number, std::move(events));
}

}  // namespace pnfsrdma::mds

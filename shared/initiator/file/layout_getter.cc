// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/layout_getter.h"

#include <algorithm>

#include "shared/base/log.h"
#include "shared/initiator/brick/device_table.h"

namespace pnfsrdma::initiator {

namespace {

constexpr uint64_t kPage = 4096;
// Fetch ahead when less than a quarter of what is asked for at a time, and no more than this, is left.
constexpr uint64_t kPrefetchDistanceMax = uint64_t{64} << 20;
// Writing inside the file: less than this part of what was written in a row.
constexpr uint64_t kFillingPart = 16;
// How far an exact wish looks ahead.
constexpr uint64_t kExactBytesMax = uint64_t{64} << 20;
// While our own layout is being recalled, or the server says DELAY.
constexpr Milliseconds kConflictPause{20};
// The end of a file that others append to is asked for again behind so many appends at most.
constexpr uint32_t kAppendsBetweenAsksMax = 1024;
// A small file that is appended to so often is worth a layout: each append costs two calls without.
constexpr uint32_t kAppendsForLayout = 8;

MetadataError no_open() {
  return {nfs4::Status::kOk, EBADF};
}

// What a wide wish was refused for need not hold for what is needed.
bool may_fit_narrower(nfs4::Status status) {
  return status == nfs4::Status::kLayoutTryLater || status == nfs4::Status::kTooSmall ||
         status == nfs4::Status::kDQuot;
}

}  // namespace

LayoutGetter::LayoutGetter(FileState& file, DeviceTable& devices, Background& background, Told& told)
    : file_(file),
      devices_(devices),
      background_(background),
      told_(told),
      threshold_read_size_(file.fabric.options.threshold_read_size),
      threshold_write_size_(file.fabric.options.threshold_write_size) {}

void LayoutGetter::set_thresholds(uint64_t read_size, uint64_t write_size) {
  threshold_read_size_ = read_size;
  threshold_write_size_ = write_size;
}

bool LayoutGetter::layout_wanted(Direction direction, uint64_t offset, uint64_t length) const {
  if (file_.cache.paused(file_.fabric.now())) return false;
  // mdsthreshold: a small file costs less through the MDS than a LAYOUTGET and a grant.
  if (direction == Direction::kRead) return file_.dirty.size() >= threshold_read_size_;
  if (appends_ >= kAppendsForLayout) return true;
  return std::max(file_.dirty.size(), range_end(offset, length)) >= threshold_write_size_;
}

bool LayoutGetter::acquire(Direction direction, uint64_t offset, uint64_t length) {
  const bool for_write = direction == Direction::kWrite;
  // Three turns: the wide wish, the exact one, and once more when the layout stateid turned out to be dead.
  for (int turn = 0; turn < 3; ++turn) {
    const uint64_t epoch = file_.layouts.epoch;
    LayoutCache::Getting getting;
    switch (file_.cache.begin_get(offset, length, for_write, file_.fabric.io_deadline(), epoch, getting)) {
      case LayoutCache::Begin::kHeld:
        return true;
      case LayoutCache::Begin::kBusy:
        return false;
      case LayoutCache::Begin::kGo:
        break;
    }
    // Behind begin_get(): the recall looks for a LAYOUTGET that is under way when it has said that it is one.
    if (file_.layouts.bulk_recalls > 0) {
      file_.cache.finish_get();
      return false;
    }
    nfs4::LayoutGetArguments wanted = what_to_ask(direction, offset, length, getting);
    if (turn > 0) {
      const uint64_t rest = range_end(wanted.offset, wanted.length) - offset;
      wanted.offset = offset;
      wanted.length = std::min(rest, kExactBytesMax);
      wanted.min_length = 1;
    }
    const auto got = get_layout(direction, wanted, getting, epoch);
    if (got) {
      if (epoch == file_.layouts.epoch) return true;
      continue;  // layouts were lost meanwhile: this one too
    }
    const nfs4::Status status = got.error().status;
    // A wide wish may be more than can be had at once: then the exact one.
    const bool wide =
        wanted.offset < offset || wanted.min_length > kPage || status == nfs4::Status::kTooSmall;
    const bool too_wide = turn == 0 && wide && may_fit_narrower(status);
    // OLD_STATEID: another open of the file, or a recall, has overtaken us. The newest one will do, and
    // nothing is lost.
    const bool overtaken = status == nfs4::Status::kOldStateid;
    const bool again = overtaken || (is_lost_state(status) && getting.stateid) ||
                       (status == nfs4::Status::kBadLayout && wanted.offset < offset) || too_wide;
    if (is_lost_state(status) && !overtaken && getting.stateid) file_.cache.drop_all();
    if (!again || turn == 2) {
      refused(got.error());
      return false;
    }
  }
  return false;
}

nfs4::LayoutGetArguments LayoutGetter::what_to_ask(Direction direction, uint64_t offset, uint64_t length,
                                                   const LayoutCache::Getting& getting) const {
  const DataPathOptions& options = file_.fabric.options;
  const uint64_t size = file_.dirty.size();
  const uint64_t end = range_end(offset, length);
  nfs4::LayoutGetArguments wanted{.layout_type = nfs4::kLayoutTypePmem, .max_count = kLayoutReplyBytesMax};
  if (direction == Direction::kRead) {
    // The whole gap that the read fell into, within one window of the file: random reads then need few
    // LAYOUTGETs.
    const uint64_t window = offset / options.layout_bytes_max * options.layout_bytes_max;
    wanted.io_mode = nfs4::IoMode::kRead;
    wanted.offset = std::max(window, getting.gap.offset);
    wanted.length =
        std::min({std::max(size, end), getting.gap.end(), range_end(window, options.layout_bytes_max)}) -
        wanted.offset;
  } else {
    // Growth by doubling: as much again as is held already. Inside the file, the rest of the gap.
    const uint64_t growth =
        std::clamp(getting.held_bytes, options.layout_bytes_min, options.layout_bytes_max);
    const uint64_t inside = size > offset ? std::min(size - offset, options.layout_bytes_max) : 0;
    wanted.io_mode = nfs4::IoMode::kReadWrite;
    wanted.offset = std::max(offset / kPage * kPage, getting.gap.offset);
    wanted.length =
        std::min(std::max({growth, inside, end - wanted.offset}), getting.gap.end() - wanted.offset);
  }
  // A write needs all of its range, and is told so: from less than that the server takes it that the file
  // grows by little. What is read may end in a hole.
  const uint64_t needed_end = direction == Direction::kWrite ? end : offset + 1;
  wanted.min_length = std::min(wanted.length, needed_end - wanted.offset);
  wanted.signal_when_available = direction == Direction::kWrite && appends_ >= kAppendsForEnd;
  return wanted;
}

MetadataResult<> LayoutGetter::get_layout(Direction direction, nfs4::LayoutGetArguments wanted,
                                          const LayoutCache::Getting& getting, uint64_t epoch) {
  nfs4::Stateid stateid;
  bool open = false;
  const FileReference file = file_.reference(direction == Direction::kWrite, &stateid, &open);
  if (!open) {
    file_.cache.finish_get();
    return std::unexpected(no_open());
  }
  file_.fabric.statistics.layoutgets.add();
  if (direction == Direction::kWrite) file_.cache.forget_holes({wanted.offset, wanted.length});
  const uint32_t hole_era = file_.layouts.holes.era();
  wanted.stateid = getting.stateid.value_or(stateid);
  const auto granted = file_.mds.layout_get(file, wanted);
  if (!granted) {
    file_.cache.finish_get();
    return std::unexpected(granted.error());
  }
  if (epoch != file_.layouts.epoch) {
    file_.cache.finish_get();
    return {};
  }
  if (granted->layouts.return_on_close) return_on_close_ = true;
  std::optional<LayoutCache::End> end;
  if (wanted.signal_when_available) {
    end = {.token = granted->layouts.layouts.empty() ? 0 : end_token(granted->layouts.layouts.front()),
           .ends_lost = getting.ends_lost,
           .era = hole_era,
           .now = file_.fabric.now()};
  }
  file_.cache.finish_get(granted->layouts.stateid, segments_of(granted->layouts, hole_era), granted->size,
                         epoch, end);
  return {};
}

void LayoutGetter::appended(uint64_t offset) {
  ++appends_;
  if (file_.cache.holds_end()) {
    asked_appends_ = 0;
    next_ask_ = kAppendsForEnd;
    return;
  }
  if (++asked_appends_ < next_ask_ || appends_ < kAppendsForEnd) return;
  asked_appends_ = 0;
  next_ask_ = std::min(next_ask_ * 2, kAppendsBetweenAsksMax);
  if (layout_wanted(Direction::kWrite, offset, 1)) ask_for_end(offset);
}

// How seldom the end is asked for stays: others may have the file still.
void LayoutGetter::closed() {
  appends_ = 0;
}

// Without a layout there it comes with the LAYOUTGET of the append.
void LayoutGetter::ask_for_end(uint64_t offset) {
  const uint64_t epoch = file_.layouts.epoch;
  LayoutCache::Getting getting;
  const auto begun = file_.cache.begin_get_again(offset, file_.fabric.io_deadline(), epoch, getting);
  if (begun != LayoutCache::Begin::kGo) return;
  if (file_.layouts.bulk_recalls > 0) return file_.cache.finish_get();
  const uint64_t page = offset / kPage * kPage;
  (void)get_layout(Direction::kWrite,
                   {.signal_when_available = true,
                    .layout_type = nfs4::kLayoutTypePmem,
                    .io_mode = nfs4::IoMode::kReadWrite,
                    .offset = page,
                    .length = kPage,
                    .min_length = offset + 1 - page,
                    .max_count = kLayoutReplyBytesMax},
                   getting, epoch);
}

void LayoutGetter::refused(const MetadataError& error) {
  // Nobody has it open any more (no_open()), so nothing was sent: whoever opens it next asks.
  if (error.number == EBADF) return;
  file_.fabric.statistics.layoutgets_refused.add();
  const DataPathOptions& options = file_.fabric.options;
  Milliseconds pause = options.layout_pause;
  switch (error.status) {
    case nfs4::Status::kRecallConflict:
    case nfs4::Status::kReturnConflict:
    case nfs4::Status::kDelay:
    case nfs4::Status::kOldStateid:
      pause = kConflictPause;
      break;
    case nfs4::Status::kLayoutUnavailable:
    case nfs4::Status::kUnknownLayoutType:
    case nfs4::Status::kNotSupp:
      pause = options.layout_unavailable_pause;
      break;
    case nfs4::Status::kBadLayout:
      // Past the end of the file, or nothing to be had there: only this I/O goes the other way.
    case nfs4::Status::kOpenMode:
      // Fetched ahead while the file was being closed, or opened with other rights.
      return;
    default:
      break;
  }
  if (!told_.layout_refused.exchange(true)) {
    log_warning("initiator",
                "layout-refused status={} error={}: I/O goes through the MDS for a while (logged once)",
                nfs4::to_string(error.status), error.number);
  }
  file_.cache.pause_until(file_.fabric.now() + pause);
}

std::vector<LayoutSegment> LayoutGetter::segments_of(const nfs4::LayoutGetResult& granted,
                                                     uint32_t hole_era) {
  std::vector<LayoutSegment> segments;
  for (const nfs4::Layout& layout : granted.layouts) {
    const auto body = pmem_body(layout);
    if (!body) continue;
    for (const nfs4::Segment& segment : body->segments) {
      // Numbers from the network: nothing that wraps, no writing where the layout is for reading.
      if (segment.length == 0 || segment.length > UINT64_MAX - segment.file_offset) continue;
      LayoutSegment held{
          .offset = segment.file_offset,
          .length = segment.length,
          .iomode = layout.io_mode,
          .generation = body->connection,
          .read = segment.read,
          .write = layout.io_mode == nfs4::IoMode::kReadWrite ? segment.write : nfs4::Target{}};
      // Only "same/same", read-only and hole are granted today; another kind is no layout to us.
      if (held.write.grant != 0 && held.write != held.read) continue;
      if (held.hole()) {
        held.incarnation = hole_era;
      } else {
        held.device = &devices_.find_or_make(segment.device);
        held.incarnation = held.device->incarnation();
        last_device_ = held.device;
      }
      segments.push_back(held);
    }
  }
  return segments;
}

void LayoutGetter::prefetch_behind(const LayoutPin& pin, Direction direction) {
  const uint64_t end = pin.offset + pin.length;
  const uint64_t left = pin.held_end - end;
  // What is got ahead of writing inside the file may be memory for a hole, which stays the file's: less, and
  // only for somebody who has gone on for a while.
  const bool inside = direction == Direction::kWrite && pin.held_end < file_.dirty.size();
  const uint64_t run = end - pin.run_begin;
  const uint64_t part = inside ? run / kFillingPart : end / 4;
  const uint64_t distance = std::min(kPrefetchDistanceMax, std::max(part, pin.length * 2));
  if (left > distance || (inside && run < file_.fabric.options.layout_bytes_min)) return;
  // Behind the end there is nothing to read; and a small file is not made large on suspicion.
  if (direction == Direction::kRead && pin.held_end >= file_.dirty.size()) return;
  if (direction == Direction::kWrite && pin.held_end < file_.fabric.options.layout_bytes_min) return;
  // Nor is a file that is only overwritten grown beyond its end.
  if (direction == Direction::kWrite && pin.held_end >= file_.dirty.size() && !file_.dirty.grew()) return;
  if (prefetching_.exchange(true)) return;
  background_.post([this, alive = file_.shared_from_this(), direction, from = pin.held_end] {
    prefetch(direction, from);
    prefetching_ = false;
  });
}

void LayoutGetter::prefetch(Direction direction, uint64_t offset) {
  if (!layout_wanted(direction, offset, 1)) return;
  if (acquire(direction, offset, 1)) file_.fabric.statistics.layoutgets_prefetched.add();
}

void LayoutGetter::take(const PendingLayout& pending, const nfs4::LayoutGetResult& result,
                        std::optional<uint64_t> size) {
  // From before layouts_lost(): what it grants is void.
  if (pending.epoch() != file_.layouts.epoch) return;
  if (result.return_on_close) return_on_close_ = true;
  file_.fabric.statistics.layoutgets.add();
  file_.cache.take(result.stateid, segments_of(result, pending.hole_era()), size, pending.epoch());
}

}  // namespace pnfsrdma::initiator

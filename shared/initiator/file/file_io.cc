// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/file_io.h"

#include <algorithm>
#include <cerrno>

#include "shared/initiator/file/inside.h"
#include "shared/initiator/mds.h"

namespace pnfsrdma::initiator {

namespace {

static_assert(FileIo::kFirstVersion == DirtyList::kFirstVersion);

// Counts how long its scope took.
class Measured {
 public:
  Measured(const Clock& clock, LatencyHistogram& histogram)
      : clock_(clock), histogram_(histogram), began_(clock.now()) {}
  ~Measured() { histogram_.add(clock_.now() - began_); }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

 private:
  const Clock& clock_;
  LatencyHistogram& histogram_;
  const SteadyTime began_;
};

}  // namespace

FileIo::FileIo(std::shared_ptr<FileInside> inside) : inside_(std::move(inside)) {}
FileIo::~FileIo() = default;

Result<size_t> FileIo::read(uint64_t offset, BufferSlice sink) {
  if (inside_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  const uint64_t size = inside_->size();
  if (offset >= size || sink.size() == 0) return size_t{0};
  const size_t count = std::min<uint64_t>(sink.size(), size - offset);
  const Measured measured(inside_->fabric.clock, inside_->fabric.statistics.read_latency);
  return inside_->transfer.move({Direction::kRead}, offset, sink.slice(0, count));
}

Result<size_t> FileIo::write(uint64_t offset, BufferSlice source, Stability stability) {
  if (inside_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  // A file ends where a signed offset ends, as for every application.
  if (offset > INT64_MAX || source.size() > INT64_MAX - offset) return fail(EFBIG, "write");
  const Measured measured(inside_->fabric.clock, inside_->fabric.statistics.write_latency);
  if (inside_->sync_habit.expects_sync()) stability = Stability::kDataSync;
  inside_->sync_habit.wrote();
  return inside_->transfer.move({Direction::kWrite, stability}, offset, source);
}

bool FileIo::start_read(PendingIo& io, uint64_t offset, BufferSlice sink, PendingIoListener* listener,
                        Doorbell doorbell) {
  if (inside_->fabric.aborted) return false;
  const uint64_t size = inside_->size();
  const size_t count = offset < size ? std::min<uint64_t>(sink.size(), size - offset) : 0;
  return inside_->transfer.start(io, {.direction = Direction::kRead, .doorbell = doorbell}, offset,
                                 sink.slice(0, count), listener);
}

bool FileIo::start_write(PendingIo& io, uint64_t offset, BufferSlice source, Stability stability,
                         PendingIoListener* listener, Doorbell doorbell, FlushChains* chains) {
  if (inside_->fabric.aborted || offset > INT64_MAX || source.size() > INT64_MAX - offset) return false;
  if (inside_->sync_habit.expects_sync()) stability = Stability::kDataSync;
  const Io what{
      .direction = Direction::kWrite, .stability = stability, .doorbell = doorbell, .chains = chains};
  if (!inside_->transfer.start(io, what, offset, source, listener)) return false;
  inside_->sync_habit.wrote();
  return true;
}

Result<size_t> FileIo::finish(PendingIo& io) {
  return inside_->transfer.finish(io);
}

bool FileIo::finish_may_wait(const PendingIo& io) const {
  return inside_->transfer.finish_may_wait(io);
}

void FileIo::abandon(PendingIo& io) {
  inside_->transfer.abandon(io);
}

Result<uint64_t> FileIo::append(BufferSlice source, Stability stability) {
  if (inside_->unstable_in_doubt()) TRY(inside_->flusher.settle_doubt());
  const uint64_t offset = inside_->dirty.begin_append(source.size());
  inside_->layout_getter.appended(offset);
  const auto written = write(offset, source, stability);
  inside_->dirty.end_append(offset, source.size(), written.has_value());
  if (!written) return std::unexpected(written.error());
  return offset;
}

Result<std::optional<uint64_t>> FileIo::append_unasked(BufferSlice source, Stability stability) {
  if (inside_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  const uint64_t end = inside_->cache.end();
  if (end == 0 || inside_->unstable_in_doubt()) return std::nullopt;
  const uint64_t offset = inside_->dirty.begin_append(source.size());
  const Measured measured(inside_->fabric.clock, inside_->fabric.statistics.write_latency);
  // Inside of the gate the end is asked for again: a recall that came since has not let it in, and one that comes
  // now waits for it.
  Result<size_t> written = fail(ECANCELED, "append");
  if (inside_->sync_habit.expects_sync()) stability = Stability::kDataSync;
  if (offset <= INT64_MAX && source.size() <= INT64_MAX - offset)
    written = inside_->transfer.move({.direction = Direction::kWrite, .stability = stability, .end = end},
                                     offset, source);
  inside_->dirty.end_append(offset, source.size(), written.has_value());
  if (written) inside_->sync_habit.wrote();
  if (written) return offset;
  if (written.error().number() == ECANCELED) return std::nullopt;
  return std::unexpected(written.error());
}

Result<uint64_t> FileIo::change_word(uint64_t offset, const WordIo& word) {
  if (inside_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  const Measured measured(inside_->fabric.clock, inside_->fabric.statistics.write_latency);
  return inside_->words.change(offset, word);
}

Result<ReadBackSums> FileIo::flush_and_verify(std::span<const FileRange> ranges, ErrorCursor& cursor) {
  TRY(fdatasync(cursor));
  return inside_->read_back.read(ranges);
}

Result<std::shared_ptr<Watch>> FileIo::watch(FileRange range) {
  if (inside_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  return inside_->watcher.watch(range);
}

Result<> FileIo::signal(FileRange range, uint64_t value, ErrorCursor& cursor) {
  if (inside_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  const Measured measured(inside_->fabric.clock, inside_->fabric.statistics.sync_latency);
  return inside_->signals.signal(range, value, cursor);
}

ErrorCursor FileIo::losses_from_now() const {
  return ErrorCursor(inside_->dirty.losses());
}

ErrorCursor FileIo::error_cursor() const {
  return ErrorCursor(inside_->dirty.unheard_from());
}

Result<> FileIo::fdatasync(ErrorCursor& cursor) {
  inside_->sync_habit.synced();
  const Measured measured(inside_->fabric.clock, inside_->fabric.statistics.sync_latency);
  return inside_->file_sync.sync(true, cursor);
}

bool FileIo::is_durable(const ErrorCursor& cursor) const {
  const DirtyList& dirty = inside_->dirty;
  return !dirty.grew() && !dirty.anything_unflushed() && !inside_->growth_void() &&
         !cursor.news(dirty.losses());
}

Result<> FileIo::fsync(ErrorCursor& cursor) {
  inside_->sync_habit.synced();
  const Measured measured(inside_->fabric.clock, inside_->fabric.statistics.sync_latency);
  return inside_->file_sync.sync(false, cursor);
}

Result<> FileIo::close(const ErrorCursor& cursor) {
  Result<> told = hand_over();
  inside_->through_mds.closed();
  return inside_->file_sync.report(cursor.news(inside_->dirty.losses()), std::move(told));
}

Result<> FileIo::settle() {
  // A server that was started anew may have less than was written through the one before it.
  if (inside_->unstable_in_doubt()) TRY(inside_->flusher.settle_doubt());
  return inside_->committer.commit_as_mounted();
}

Result<> FileIo::hand_over() {
  const auto flush = [this] {
    return inside_->patience.as_mounted([this] { return inside_->flusher.flush(false); });
  };
  // First: why the server does not take it is lost in settle().
  Result<> outcome = holds() ? flush() : Result<>();
  if (outcome) outcome = settle();
  if (outcome && inside_->dirty.keeps_copies()) outcome = flush();
  inside_->dirty.drop_copies();
  return outcome;
}

Result<std::optional<nfs4::LayoutReturnArguments>> FileIo::truncating(uint64_t new_size) {
  std::optional<nfs4::LayoutReturnArguments> layout_return;
  if (holds()) TRY(inside_->flusher.settle_doubt());
  TRY(inside_->patience.as_mounted([&]() -> Result<> {
    TRY_ASSIGN(layout_return, inside_->truncater.begin(new_size));
    return {};
  }));
  return layout_return;
}

void FileIo::layout_returned(const nfs4::LayoutReturnResult& result) {
  inside_->truncater.layout_returned(result);
}

uint64_t FileIo::truncated(uint64_t new_size, bool done) {
  return inside_->truncater.end(new_size, done);
}

void FileIo::layouts_refused(nfs4::Status status) {
  // OLD_STATEID is only a recall that overtook us.
  if (status != nfs4::Status::kOldStateid) inside_->cache.drop_all();
}

void FileIo::take_layout(PendingLayout pending, const nfs4::LayoutGetResult& result,
                         std::optional<uint64_t> size) {
  inside_->layout_getter.take(pending, result, size);
}

uint64_t FileIo::local_version() const {
  return inside_->dirty.version();
}

void FileIo::server_size(uint64_t size, uint64_t version, SteadyTime asked) {
  if (inside_->dirty.server_size(size, version, asked)) inside_->cache.know_end(asked);
}

LocalAttributes FileIo::local_attributes() const {
  return {inside_->size(), inside_->dirty.modified()};
}

uint64_t FileIo::size() const {
  return inside_->size();
}

void FileIo::count_read(size_t bytes) {
  inside_->fabric.statistics.mds_reads.add();
  inside_->fabric.statistics.mds_read_bytes.add(bytes);
}

void FileIo::set_thresholds(uint64_t read_size, uint64_t write_size) {
  inside_->layout_getter.set_thresholds(read_size, write_size);
}

std::vector<Device*> FileIo::devices(std::optional<FileRange> range) const {
  auto devices = range ? inside_->cache.devices(*range) : inside_->dirty.devices();
  if (devices.empty()) devices = inside_->cache.devices();
  Device* const last = inside_->layout_getter.last_device();
  if (devices.empty() && last != nullptr) devices.push_back(last);
  return devices;
}

bool FileIo::holds() const {
  return inside_->dirty.holds();
}

void FileIo::send_held_beside() {
  inside_->flusher.flush_beside();
}

void FileIo::release() {
  // Pages of a mapping may have come behind the last close.
  if (holds()) (void)inside_->flusher.settle_doubt();
  const Result<> told = inside_->committer.commit_as_mounted();
  // Without an open nothing can be written again.
  if (!told && inside_->kept.any()) inside_->restorer.growth_lost(told.error());
  inside_->kept.clear();
  inside_->layout_getter.closed();
  if (inside_->layout_getter.return_on_close()) inside_->returner.return_everything();
  inside_->all_files.closed(*inside_);
}

}  // namespace pnfsrdma::initiator

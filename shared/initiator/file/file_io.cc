// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/file_io.h"

#include <algorithm>

#include "shared/initiator/file/parts.h"
#include "shared/initiator/mds.h"

namespace pnfsrdma::initiator {

namespace {

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

FileIo::Parts::Parts(const Mount& what, AllFiles& all, nfs4::FileHandle file, uint64_t size)
    : FileState(what, std::move(file), size),
      mount(what),
      all_files(all),
      threshold_read_size(what.fabric.options.threshold_read_size),
      threshold_write_size(what.fabric.options.threshold_write_size) {}

FileIo::FileIo(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
FileIo::~FileIo() = default;

Result<size_t> FileIo::read(uint64_t offset, BufferSlice sink) {
  if (parts_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  const uint64_t size = parts_->size();
  if (offset >= size || sink.size() == 0) return size_t{0};
  const size_t count = std::min<uint64_t>(sink.size(), size - offset);
  const Measured measured(parts_->fabric.clock, parts_->fabric.statistics.read_latency);
  return parts_->move({Direction::kRead}, offset, sink.slice(0, count));
}

Result<size_t> FileIo::write(uint64_t offset, BufferSlice source, Stability stability) {
  if (parts_->fabric.aborted) return fail(ESHUTDOWN, "the mount ends");
  // A file ends where a signed offset ends, as for every application.
  if (offset > INT64_MAX || source.size() > INT64_MAX - offset) return fail(EFBIG, "write");
  const Measured measured(parts_->fabric.clock, parts_->fabric.statistics.write_latency);
  return parts_->move({Direction::kWrite, stability}, offset, source);
}

Result<uint64_t> FileIo::append(BufferSlice source, Stability stability) {
  if (parts_->unstable_in_doubt()) TRY(parts_->settle_doubt());
  const uint64_t offset = parts_->dirty.begin_append(source.size());
  const auto written = write(offset, source, stability);
  parts_->dirty.end_append(offset, source.size(), written.has_value());
  if (!written) return std::unexpected(written.error());
  return offset;
}

ErrorCursor FileIo::error_cursor() const {
  return ErrorCursor(parts_->dirty.unheard_from());
}

Result<> FileIo::fdatasync(ErrorCursor& cursor) {
  const Measured measured(parts_->fabric.clock, parts_->fabric.statistics.sync_latency);
  return parts_->sync(true, cursor);
}

Result<> FileIo::fsync(ErrorCursor& cursor) {
  const Measured measured(parts_->fabric.clock, parts_->fabric.statistics.sync_latency);
  return parts_->sync(false, cursor);
}

Result<> FileIo::close(const ErrorCursor& cursor) {
  Result<> told = parts_->commit_as_mounted();
  parts_->dirty.drop_copies();
  return parts_->report(cursor.news(parts_->dirty.losses()), std::move(told));
}

Result<> FileIo::settle() {
  return parts_->commit_as_mounted();
}

Result<> FileIo::hand_over() {
  Result<> outcome = settle();
  if (outcome && parts_->dirty.keeps_copies()) {
    outcome = parts_->patience.as_mounted([this] { return parts_->flush(false); });
  }
  parts_->dirty.drop_copies();
  return outcome;
}

Result<std::optional<nfs4::LayoutReturnArguments>> FileIo::truncating(uint64_t new_size) {
  std::optional<nfs4::LayoutReturnArguments> layout_return;
  TRY(parts_->patience.as_mounted([&]() -> Result<> {
    TRY_ASSIGN(layout_return, parts_->truncating(new_size));
    return {};
  }));
  return layout_return;
}

void FileIo::layout_returned(const nfs4::LayoutReturnResult& result) {
  parts_->layout_returned(result);
}

uint64_t FileIo::truncated(uint64_t new_size, bool done) {
  return parts_->truncated(new_size, done);
}

void FileIo::layouts_refused(nfs4::Status status) {
  // OLD_STATEID is only a recall that overtook us.
  if (status != nfs4::Status::kOldStateid) parts_->cache.drop_all();
}

void FileIo::take_layout(PendingLayout pending, const nfs4::LayoutGetResult& result,
                         std::optional<uint64_t> size) {
  // From before layouts_lost(): what it grants is void.
  if (pending.epoch() != parts_->layouts.epoch) return;
  if (result.return_on_close) parts_->return_on_close = true;
  parts_->fabric.statistics.layoutgets.add();
  parts_->cache.take(result.stateid, parts_->segments_of(result, pending.hole_era()), size, pending.epoch());
}

uint64_t FileIo::local_version() const {
  return parts_->dirty.version();
}

void FileIo::server_size(uint64_t size, uint64_t version, SteadyTime asked) {
  parts_->dirty.server_size(size, version, asked);
}

LocalAttributes FileIo::local_attributes() const {
  return {parts_->size(), parts_->dirty.modified()};
}

uint64_t FileIo::size() const {
  return parts_->size();
}

void FileIo::set_thresholds(uint64_t read_size, uint64_t write_size) {
  parts_->threshold_read_size = read_size;
  parts_->threshold_write_size = write_size;
}

std::vector<Device*> FileIo::devices(std::optional<FileRange> range) const {
  auto devices = range ? parts_->cache.devices(*range) : parts_->dirty.devices();
  if (devices.empty()) devices = parts_->cache.devices();
  Device* const last = parts_->last_device;
  if (devices.empty() && last != nullptr) devices.push_back(last);
  return devices;
}

void FileIo::release() {
  const Result<> told = parts_->commit_as_mounted();
  // Without an open nothing can be written again.
  if (!told && parts_->kept.any()) parts_->growth_lost(told.error());
  parts_->kept.clear();
  if (parts_->return_on_close) parts_->return_everything();
  parts_->all_files.closed(*parts_);
}

}  // namespace pnfsrdma::initiator

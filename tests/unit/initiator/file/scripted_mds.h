// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "shared/initiator/mds.h"
#include "shared/xdr/codec.h"
#include "tests/unit/initiator/file/fake_brick.h"

namespace pnfsrdma::initiator {

// An MDS of one file on one FakeBrick (or, from a moment on, on another one): grants layouts in segments of
// `segment_bytes`, knows holes, keeps size and seqid. The next answers can be scripted; calls are counted and
// logged.
class ScriptedMds final : public Mds {
 public:
  ScriptedMds(FakeBrick& brick, std::string netid, EventLog& events)
      : first_(brick), brick_(&brick), netid_(std::move(netid)), events_(events) {}

  // Knobs and views.
  std::atomic<uint64_t> segment_bytes = uint64_t{1} << 20;
  std::atomic<uint64_t> size = 0;
  std::atomic<uint8_t> ticket = 1;
  std::atomic<uint32_t> flush_methods =
      nfs4::kFlushNative | nfs4::kFlushCommitMessage | nfs4::kFlushLayoutCommit;
  std::atomic<Durability> durability = Durability::kVolatile;         // of the device
  std::atomic<Durability> server_durability = Durability::kVolatile;  // the least of all devices
  std::atomic<int> calls = 0;
  FileRange last_returned;
  std::atomic<int> ends_asked = 0;
  std::atomic<uint64_t> end_token = 0;  // 0: the end is not to be had
  std::vector<nfs4::LayoutErrorArguments> layout_errors;
  std::vector<nfs4::LayoutStatisticsArguments> activity;  // LAYOUTSTATS, alone and with LAYOUTRETURN
  std::atomic<int> layoutgets = 0, layoutcommits = 0, layoutreturns = 0, reads = 0, writes = 0, commits = 0;
  std::atomic<int> device_infos = 0;
  std::atomic<uint8_t> write_verifier = 1;
  std::atomic<bool> hold_async_commits = false;
  std::atomic<bool> lease_over = false;
  std::atomic<bool> void_generation = false;  // layouts say connection 0
  std::function<void()> during_layoutget;
  std::function<void()> during_layoutcommit;
  std::function<void()> during_commit;
  std::function<void()> during_read;         // before it is done
  std::function<void()> during_write;        // before it is done
  std::function<void()> during_bulk_return;  // before it is done
  std::function<void()> during_renewal;
  std::atomic<int> renewals = 0;
  std::atomic<uint8_t> known_open = 0;  // READ and WRITE under the open of another number are BAD_STATEID
  std::atomic<nfs4::Status> refuse_writes = nfs4::Status::kOk;
  std::atomic<nfs4::Status> refuse_commits = nfs4::Status::kOk;
  std::atomic<nfs4::Status> refuse_returns = nfs4::Status::kOk;
  std::atomic<nfs4::Status> stateid_status = nfs4::Status::kBadStateid;  // of a layout's
  std::set<uint64_t> holes;  // segment starts that are holes for readers

  // LAYOUTGET fails with these, one each.
  void refuse_layoutgets(std::vector<nfs4::Status> statuses) {
    std::lock_guard lock(mutex_);
    refusals_.assign(statuses.begin(), statuses.end());
  }
  void refuse_layoutcommit(nfs4::Status status) {
    std::lock_guard lock(mutex_);
    commit_refusal_ = status;
  }
  // All layouts are revoked: their stateid is unknown from now on.
  void forget_layouts() {
    std::lock_guard lock(mutex_);
    ++layout_serial_;
  }
  // The file lies on another brick from now on.
  void move_to(FakeBrick& target) {
    std::lock_guard lock(mutex_);
    brick_ = &target;
    ++layout_serial_;
  }
  std::atomic<bool> forget_first_device = false;
  // What lies from `begin` on lies there.
  void put_rest_on(FakeBrick& other, uint64_t begin) {
    std::lock_guard lock(mutex_);
    rest_brick_ = &other;
    rest_begin_ = begin;
    void_generation = true;
  }
  // While it is held no WRITE and no LAYOUTCOMMIT changes the file, and nobody gets a layout of it.
  std::unique_lock<std::mutex> quiet() { return std::unique_lock(quiet_mutex_); }
  nfs4::Stateid recall_stateid() {
    std::lock_guard lock(mutex_);
    ++layout_stateid_.seqid;
    return layout_stateid_;
  }
  nfs4::Stateid stateid() {
    std::lock_guard lock(mutex_);
    return layout_stateid_;
  }
  nfs4::LayoutCommitArguments last_commit() {
    std::lock_guard lock(mutex_);
    return last_commit_;
  }
  void release_async_commits() {
    std::vector<std::function<void()>> held;
    {
      std::lock_guard lock(mutex_);
      held.swap(held_);
    }
    for (auto& run : held) run();
  }

  MetadataResult<nfs4::DeviceAddress> get_device_info(const nfs4::DeviceId& device) override {
    ++calls;
    if (device == nfs4::kEveryDevice) {
      nfs4::DeviceAddress all;
      all.durability = server_durability;
      return all;
    }
    ++device_infos;
    FakeBrick* const rest = rest_brick_;
    FakeBrick& asked = device == device_of(first_) ? first_ : rest != nullptr ? *rest : brick();
    if (device != device_of(asked) || (forget_first_device && &asked == &first_)) {
      return std::unexpected(MetadataError{nfs4::Status::kNoEnt, 0});
    }
    nfs4::DeviceAddress address;
    const std::string at = asked.address();
    const size_t colon = at.rfind(':');
    const int port = std::stoi(at.substr(colon + 1));
    const std::string universal =
        netid_ == "memory"
            ? at
            : at.substr(0, colon) + "." + std::to_string(port / 256) + "." + std::to_string(port % 256);
    address.paths.push_back({netid_, universal});
    address.ticket.fill(std::byte{ticket.load()});
    address.flush_methods = flush_methods;
    address.durability = durability;
    return address;
  }

  MetadataResult<LayoutGetAnswer> layout_get(const FileReference&,
                                             const nfs4::LayoutGetArguments& wanted) override {
    ++calls;
    ++layoutgets;
    if (during_layoutget) during_layoutget();
    std::lock_guard quiet(quiet_mutex_);
    std::lock_guard lock(mutex_);
    if (!refusals_.empty()) {
      const nfs4::Status status = refusals_.front();
      refusals_.pop_front();
      return std::unexpected(MetadataError{status, 0});
    }
    if (wanted.io_mode == nfs4::IoMode::kRead && wanted.offset >= size) {
      return std::unexpected(MetadataError{nfs4::Status::kBadLayout, 0});
    }
    events_.add("layoutget " + std::to_string(wanted.offset));
    const uint64_t step = segment_bytes;
    const uint64_t from = wanted.offset / step * step;
    const uint64_t limit =
        wanted.io_mode == nfs4::IoMode::kRead ? std::max<uint64_t>(size, 1) : FakeBrick::kBytes;
    const uint64_t end = std::min<uint64_t>(range_end(wanted.offset, wanted.length), limit);
    nfs4::Layout layout{.offset = from, .io_mode = wanted.io_mode};
    nfs4::LayoutBody body;
    for (uint64_t at = from; at < end && at < FakeBrick::kBytes; at += step) {
      FakeBrick& there = rest_brick_ != nullptr && at >= rest_begin_ ? *rest_brick_ : brick();
      nfs4::Segment segment{.device = device_of(there), .file_offset = at, .length = step};
      const bool writable = wanted.io_mode == nfs4::IoMode::kReadWrite;
      if (writable || !holes.contains(at)) {
        segment.read = there.grant(at, step, writable);
        if (writable) segment.write = segment.read;
      }
      body.segments.push_back(segment);
      layout.length = at + step - from;
    }
    body.connection = brick().connection();
    if (void_generation) {
      body.connection = 0;
      for (auto& segment : body.segments) {
        segment.read.handle = segment.write.handle = 0;
        segment.read.address = segment.write.address = 0;
      }
    }
    ++layout_stateid_.seqid;
    layout_stateid_.other.fill(std::byte{layout_serial_});
    Bytes content = xdr::encode_to_bytes(body);
    if (wanted.signal_when_available) ++ends_asked;
    if (wanted.signal_when_available && end_token != 0) {
      const Bytes end = xdr::encode_to_bytes(nfs4::LayoutEnd{end_token});
      content.insert(content.end(), end.begin(), end.end());
    }
    layout.content = {nfs4::kLayoutTypePmem, std::move(content)};
    return LayoutGetAnswer{{.stateid = layout_stateid_, .layouts = {layout}}, size.load()};
  }

  MetadataResult<nfs4::LayoutCommitResult> layout_commit(const FileReference&,
                                                         const nfs4::LayoutCommitArguments& wanted) override {
    ++calls;
    return commit_layout(wanted);
  }
  void start_layout_commit(const FileReference&, const nfs4::LayoutCommitArguments& wanted,
                           std::function<void(MetadataResult<nfs4::LayoutCommitResult>)> done) override {
    ++calls;
    auto run = [this, wanted, done = std::move(done)] { done(commit_layout(wanted)); };
    if (!hold_async_commits) return run();
    std::lock_guard lock(mutex_);
    held_.push_back(run);
  }

  void start_layout_error(const FileReference&, const nfs4::LayoutErrorArguments& arguments) override {
    std::lock_guard lock(mutex_);
    layout_errors.push_back(arguments);
  }
  uint64_t written_as_told() {
    std::lock_guard lock(mutex_);
    uint64_t bytes = 0;
    for (const auto& told : activity) bytes += told.write.bytes;
    return bytes;
  }
  void start_layout_statistics(std::vector<LayoutReport> reports) override {
    std::lock_guard lock(mutex_);
    for (LayoutReport& report : reports) activity.push_back(std::move(report.activity));
  }

  MetadataResult<nfs4::Status> test_stateid(const nfs4::Stateid&) override { return stateid_status.load(); }
  MetadataResult<nfs4::LayoutReturnResult> layout_return(
      const FileReference&, const nfs4::LayoutReturnArguments& arguments,
      const nfs4::LayoutStatisticsArguments* told) override {
    if (told != nullptr) {
      std::lock_guard lock(mutex_);
      activity.push_back(*told);
    }
    const auto* file = arguments.what.get_if<nfs4::LayoutReturnType::kFile>();
    if (file == nullptr) return return_all();
    const nfs4::LayoutReturnFile& wanted = *file;
    ++calls;
    ++layoutreturns;
    if (refuse_returns.load() != nfs4::Status::kOk)
      return std::unexpected(MetadataError{refuse_returns.load(), 0});
    events_.add("layoutreturn");
    last_returned = {wanted.offset, wanted.length};
    // As a brick does: the handle is dead before the answer. And as an MDS does: what it has not been told of
    // is zeroed.
    const uint64_t length = std::min<uint64_t>(wanted.length, FakeBrick::kBytes - wanted.offset);
    std::lock_guard bytes(bytes_mutex_);
    brick().withdraw(wanted.offset, length);
    const uint64_t untold = std::max<uint64_t>(wanted.offset, size);
    if (untold < wanted.offset + length)
      std::memset(brick().memory() + untold, 0, wanted.offset + length - untold);
    std::lock_guard lock(mutex_);
    ++layout_stateid_.seqid;
    if (brick().grants() == 0) return nfs4::LayoutReturnResult{};
    return nfs4::LayoutReturnResult{layout_stateid_};
  }
  MetadataResult<nfs4::ReadResult> read(const FileReference&, const nfs4::Stateid& stateid, uint64_t offset,
                                        MutableByteSpan sink) override {
    ++calls;
    ++reads;
    if (during_read) during_read();
    if (!knows(stateid)) return std::unexpected(MetadataError{nfs4::Status::kBadStateid, 0});
    std::lock_guard bytes(bytes_mutex_);
    const uint64_t end = std::min<uint64_t>(size, offset + sink.size());
    const size_t count = end > offset ? end - offset : 0;
    std::memcpy(sink.data(), brick().memory() + offset, count);
    return nfs4::ReadResult{offset + count >= size, nfs4::Data::view_of(sink.first(count))};
  }
  MetadataResult<nfs4::WriteResult> write(const FileReference&, const nfs4::Stateid& stateid, uint64_t offset,
                                          ByteSpan source, nfs4::StableHow stable) override {
    ++calls;
    ++writes;
    if (during_write) during_write();
    if (!knows(stateid)) return std::unexpected(MetadataError{nfs4::Status::kBadStateid, 0});
    std::lock_guard quiet(quiet_mutex_);
    if (refuse_writes.load() != nfs4::Status::kOk)
      return std::unexpected(MetadataError{refuse_writes.load(), 0});
    std::lock_guard bytes(bytes_mutex_);
    std::memcpy(brick().memory() + offset, source.data(), source.size());
    grow(offset + source.size());
    if (stable != nfs4::StableHow::kUnstable) events_.add("durable write");
    return nfs4::WriteResult{
        .count = static_cast<uint32_t>(source.size()), .committed = stable, .verifier = verifier()};
  }
  MetadataResult<WriteVerifier> commit(const FileReference&, const nfs4::CommitArguments&) override {
    ++calls;
    ++commits;
    events_.add("commit");
    if (auto hook = during_commit) hook();
    if (refuse_commits.load() != nfs4::Status::kOk)
      return std::unexpected(MetadataError{refuse_commits.load(), 0});
    return verifier();
  }
  size_t io_size_max() const override { return 1 << 20; }
  SteadyTime lease_end() const override { return lease_over ? SteadyTime{} : SteadyTime::max(); }
  void renew_opens() override {
    ++renewals;
    if (during_renewal) during_renewal();
  }

  nfs4::DeviceId device_of(const FakeBrick& brick) const {
    nfs4::DeviceId device;
    device.fill(std::byte{static_cast<uint8_t>(&brick == &first_ ? 7 : 8)});
    return device;
  }

 private:
  bool knows(const nfs4::Stateid& stateid) const {
    return stateid.other.front() == std::byte{known_open.load()};
  }
  MetadataResult<nfs4::LayoutReturnResult> return_all() {
    ++calls;
    ++layoutreturns;
    if (auto hook = during_bulk_return) hook();
    events_.add("layoutreturn all");
    brick().withdraw(0, FakeBrick::kBytes);
    return nfs4::LayoutReturnResult{};
  }
  MetadataResult<nfs4::LayoutCommitResult> commit_layout(const nfs4::LayoutCommitArguments& wanted) {
    ++layoutcommits;
    if (auto hook = during_layoutcommit) hook();
    std::lock_guard quiet(quiet_mutex_);
    std::lock_guard bytes(bytes_mutex_);
    std::lock_guard lock(mutex_);
    if (wanted.stateid.other.front() != std::byte{layout_serial_}) {
      return std::unexpected(MetadataError{nfs4::Status::kBadStateid, 0});
    }
    if (commit_refusal_ != nfs4::Status::kOk) {
      return std::unexpected(MetadataError{std::exchange(commit_refusal_, nfs4::Status::kOk), 0});
    }
    std::string event = "layoutcommit";
    if (wanted.last_write_offset) event += " size=" + std::to_string(*wanted.last_write_offset + 1);
    if (wanted.update.body != xdr::encode_to_bytes(nfs4::LayoutUpdate{})) event += " persist";
    events_.add(event);
    last_commit_ = wanted;
    if (wanted.last_write_offset) grow(*wanted.last_write_offset + 1);
    return nfs4::LayoutCommitResult{size.load()};
  }
  void grow(uint64_t to) {
    uint64_t now = size;
    while (now < to && !size.compare_exchange_weak(now, to)) {
    }
  }
  WriteVerifier verifier() const {
    WriteVerifier value;
    value.fill(std::byte{write_verifier.load()});
    return value;
  }

  FakeBrick& brick() const { return *brick_; }
  FakeBrick& first_;
  std::atomic<FakeBrick*> brick_;
  std::atomic<FakeBrick*> rest_brick_ = nullptr;
  uint64_t rest_begin_ = 0;
  const std::string netid_;
  EventLog& events_;
  std::mutex mutex_;
  std::mutex quiet_mutex_;  // taken before the others
  std::mutex bytes_mutex_;  // the file's bytes and size change together, as under an MDS; before mutex_
  nfs4::Stateid layout_stateid_;
  uint8_t layout_serial_ = 9;
  std::deque<nfs4::Status> refusals_;
  nfs4::Status commit_refusal_ = nfs4::Status::kOk;
  nfs4::LayoutCommitArguments last_commit_;
  std::vector<std::function<void()>> held_;
};

}  // namespace pnfsrdma::initiator

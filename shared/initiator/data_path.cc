// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/data_path.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/base/log.h"
#include "shared/initiator/brick/device_table.h"
#include "shared/initiator/file/background.h"
#include "shared/initiator/file/file_table.h"
#include "shared/initiator/file/inside.h"
#include "shared/initiator/file/mount.h"
#include "shared/initiator/file/recaller.h"
#include "shared/initiator/file/watching.h"
#include "shared/rpc/universal_address.h"

namespace pnfsrdma::initiator {

namespace {

std::vector<TransportDomain> make_domains(std::vector<std::shared_ptr<rdma::Transport>> transports) {
  CHECK(transports.size() <= kTransportsMax);
  std::vector<TransportDomain> domains;
  for (auto& transport : transports) {
    auto domain = transport->make_protection_domain();
    domains.push_back({std::move(transport), std::move(domain)});
  }
  return domains;
}

// "rdma 192.0.2.1:20052"; an address that is none as it came.
std::string to_text(const nfs4::DevicePath& path) {
  const auto address = rpc::from_universal_address(path.address);
  const std::string& as_it_came = path.address;
  return std::string(path.netid) + " " + (address ? address->to_string() : as_it_came);
}

template <nfs4::LayoutReturnType Which>
nfs4::LayoutReturnArguments bulk_return() {
  return {.layout_type = nfs4::kLayoutTypePmem, .what = nfs4::LayoutReturnWhat::make<Which>()};
}

Result<nfs4::DeviceAddress> address_of_device(Mds& mds, const nfs4::DeviceId& id) {
  auto asked = mds.get_device_info(id);
  if (!asked) return fail(asked.error().to_errno(), "GETDEVICEINFO of " + to_hex(id));
  return *std::move(asked);
}

}  // namespace

struct DataPath::Impl {
  Impl(Mds& server, const Clock& clock, std::vector<TransportDomain> domains, const DataPathOptions& options)
      : mds(server),
        fabric{.clock = clock,
               .options = options,
               .transports = std::move(domains),
               .address_of = [&server](const nfs4::DeviceId& id) { return address_of_device(server, id); },
               .destruction = destruction},
        layouts(mds, clock),
        kept_memory(options.kept_bytes_max),
        unstable_memory(options.unstable_bytes_max),
        buffers(fabric.transports, kBufferSize, options.buffers_kept),
        devices(fabric),
        files({fabric, mds, layouts, told, kept_memory, unstable_memory, devices, buffers, background,
               closing, watching},
              options.closed_files_kept),
        recaller(options.recall_threads) {
    if (options.flush_after > Milliseconds(0)) flush_old_later();
    if (options.activity_distance > Milliseconds(0)) tell_activity_later();
  }
  void flush_old_later() {
    closing.after(fabric.options.flush_after, [this] {
      files.flush_old();
      if (!fabric.aborted) flush_old_later();
    });
  }

  void tell_activity_later() {
    closing.after(fabric.options.activity_distance, [this] {
      files.tell_activity();
      if (!fabric.aborted) tell_activity_later();
    });
  }

  CallbackAnswer recall_file(const nfs4::LayoutRecallFile& what, nfs4::IoMode iomode, bool changed);
  static Recaller::Subject subject_of(const FileIo& file);
  CallbackAnswer recall_bulk(bool all, bool changed);
  void give_back_everything(bool all, bool changed);

  Mds& mds;
  Fabric fabric;
  MountLayouts layouts;
  Told told;
  KeptMemory kept_memory;
  UnstableMemory unstable_memory;
  // Memory that a queue pair may write into goes after it: that of messages with its connection, that of
  // workers when an operation is over.
  DeferredDestruction destruction{"data-destroy"};
  BufferPool buffers;
  DeviceTable devices;
  FileTable files;
  // Last, so that their threads are gone before what they work on.
  Background background, closing;
  Recaller recaller;
  Watching watching;
};

DataPath::DataPath(Mds& mds, const Clock& clock, std::vector<std::shared_ptr<rdma::Transport>> transports,
                   DataPathOptions options)
    : impl_(std::make_unique<Impl>(mds, clock, make_domains(std::move(transports)), options)) {}

DataPath::~DataPath() {
  impl_->watching.stop();
  impl_->fabric.events.stop();
  impl_->fabric.completions.stop();
}

std::shared_ptr<FileIo> DataPath::open(const nfs4::FileHandle& handle, OpenStateSource& opens,
                                       uint64_t size) {
  return impl_->files.open(handle, opens, size);
}

PendingLayout DataPath::layout_at_open(bool for_write, FileIo* known) {
  MountLayouts& layouts = impl_->layouts;
  PendingLayout pending(layouts.pending, layouts.epoch, layouts.holes.era());
  if (!impl_->fabric.options.layouts || layouts.bulk_recalls > 0) return pending;
  nfs4::LayoutGetArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = for_write ? nfs4::IoMode::kReadWrite : nfs4::IoMode::kRead;
  arguments.length = nfs4::kLengthToEnd;
  arguments.stateid = nfs4::Stateid::current();
  arguments.max_count = kLayoutReplyBytesMax;
  if (for_write && known != nullptr) known->inside().cache.forget_holes({0, UINT64_MAX});
  pending.arguments = arguments;
  return pending;
}

CallbackAnswer DataPath::layout_recall(const nfs4::CallbackLayoutRecallArguments& arguments) {
  Statistics& counters = impl_->fabric.statistics;
  counters.recalls.add();
  CallbackAnswer answer{nfs4::Status::kNomatchingLayout, {}};
  if (arguments.layout_type == nfs4::kLayoutTypePmem) {
    const auto* file = arguments.what.get_if<nfs4::LayoutRecallType::kFile>();
    const bool all = arguments.what.discriminant() == nfs4::LayoutRecallType::kAll;
    answer = file != nullptr ? impl_->recall_file(*file, arguments.io_mode, arguments.changed)
                             : impl_->recall_bulk(all, arguments.changed);
  }
  if (answer.status == nfs4::Status::kNomatchingLayout) counters.recalls_without_match.add();
  if (answer.status == nfs4::Status::kDelay) counters.recalls_delayed.add();
  return answer;
}

CallbackAnswer DataPath::Impl::recall_file(const nfs4::LayoutRecallFile& what, nfs4::IoMode iomode,
                                           bool changed) {
  const FileTable::Entry file = files.find(what.file_handle);
  FileRange gate{what.offset, std::min(what.length, UINT64_MAX - what.offset)};
  auto verdict = LayoutCache::Recall::kNothing;
  if (file) verdict = file->inside().cache.begin_recall(what.stateid, iomode, gate);
  switch (verdict) {
    case LayoutCache::Recall::kDelay:
      return {nfs4::Status::kDelay, {}};
    case LayoutCache::Recall::kNothing:
      // It may have overtaken the answer to an OPEN that carries the layout.
      return {layouts.pending > 0 ? nfs4::Status::kDelay : nfs4::Status::kNomatchingLayout, {}};
    case LayoutCache::Recall::kAccepted:
      break;
  }
  // All that is forgotten here, which may be more than was asked for: a handle lives until all of it is returned.
  const FileRange returned{gate.offset, what.length == UINT64_MAX ? UINT64_MAX : gate.length};
  return {nfs4::Status::kOk, [this, file, iomode, gate, returned, changed] {
            recaller.post(subject_of(*file), [file, iomode, gate, returned, changed] {
              file->inside().returner.give_back(iomode, gate, returned, changed);
            });
          }};
}

// The bricks that giving something of it back has to ask.
Recaller::Subject DataPath::Impl::subject_of(const FileIo& file) {
  Recaller::Subject subject{.file = &file};
  for (const auto& devices : {file.inside().cache.devices(), file.inside().dirty.devices()}) {
    for (const Device* device : devices) {
      if (std::find(subject.devices.begin(), subject.devices.end(), device) == subject.devices.end())
        subject.devices.push_back(device);
    }
  }
  return subject;
}

CallbackAnswer DataPath::Impl::recall_bulk(bool all, bool changed) {
  // From here on no LAYOUTGET begins. One that is under way may be answered with what is recalled.
  ++layouts.bulk_recalls;
  bool any = false;
  bool getting = layouts.pending > 0;
  for (const FileTable::Entry& file : files.all()) {
    any = any || file->inside().cache.holds_anything();
    getting = getting || file->inside().cache.getting();
  }
  if (any && !getting) {
    return {nfs4::Status::kOk, [this, all, changed] {
              recaller.post({.file = &layouts.bulk_recalls},
                            [this, all, changed] { give_back_everything(all, changed); });
            }};
  }
  --layouts.bulk_recalls;
  return {getting ? nfs4::Status::kDelay : nfs4::Status::kNomatchingLayout, {}};
}

// RFC 8881, 12.5.5.2: one LAYOUTRETURN at the end for all files. Until its answer no file gets a layout, and
// none takes its grants for dead. Which files lie on the file system of an FSID recall is not known here: all
// are given back, and said so.
void DataPath::Impl::give_back_everything(bool all, bool changed) {
  std::vector<std::pair<FileTable::Entry, FileRange>> given;
  for (const FileTable::Entry& file : files.all()) {
    FileRange gate{0, UINT64_MAX};
    if (file->inside().cache.begin_return(nfs4::IoMode::kAny, gate)) given.emplace_back(file, gate);
  }
  for (const auto& [file, gate] : given) file->inside().returner.begin_bulk_return(gate, changed);
  files.tell_activity();
  MetadataResult<nfs4::LayoutReturnResult> answer;
  if (!all && !given.empty())
    answer = mds.layout_return(given.front().first->inside().reference(true),
                               bulk_return<nfs4::LayoutReturnType::kFsid>(), nullptr);
  const auto answer_of_all = mds.layout_return({}, bulk_return<nfs4::LayoutReturnType::kAll>(), nullptr);
  if (!answer_of_all) answer = answer_of_all;
  fabric.statistics.layoutreturns.add();
  for (const auto& [file, gate] : given)
    file->inside().returner.end_bulk_return(gate, answer_of_all.has_value());
  if (!answer) log_warning("initiator", "bulk-return-failed errno={}", answer.error().to_errno());
  --layouts.bulk_recalls;
}

CallbackAnswer DataPath::recall_any(const nfs4::CallbackRecallAnyArguments& arguments) {
  bool ours = false;
  for (uint32_t bit = nfs4::kRecallAnyOtherLayoutMin; bit <= nfs4::kRecallAnyOtherLayoutMax; ++bit) {
    ours = ours || arguments.types.test(bit);
  }
  if (!ours) return {nfs4::Status::kOk, {}};
  impl_->fabric.statistics.recalls.add();
  return {nfs4::Status::kOk, [this, keep = arguments.objects_to_keep] {
            impl_->recaller.post({.file = &impl_->files}, [this, keep] { impl_->files.shrink(keep); });
          }};
}

CallbackAnswer DataPath::notify_deviceid(const nfs4::CallbackNotifyDeviceIdArguments&) {
  // Changed or deleted: either way the next connection asks GETDEVICEINFO first.
  for (Device* device : impl_->devices.all()) device->forget_address();
  return {nfs4::Status::kOk, {}};
}

void DataPath::layouts_lost() {
  ++impl_->layouts.epoch;
  ++impl_->layouts.session;
  impl_->fabric.statistics.layouts_dropped.add();
  // What the server has not committed it may have lost: soon, and not when somebody asks.
  impl_->closing.post([files = &impl_->files] { files->flush_unstable(); });
}

void DataPath::session_renewed() {
  ++impl_->layouts.session;
  layouts_in_doubt();
  // As in layouts_lost().
  impl_->closing.post([files = &impl_->files] { files->flush_unstable(); });
}

void DataPath::layouts_in_doubt() {
  impl_->layouts.holes.doubt();
}

std::vector<nfs4::Stateid> DataPath::layout_stateids() const {
  std::vector<nfs4::Stateid> stateids = impl_->layouts.lost.all();
  for (const FileTable::Entry& file : impl_->files.all()) {
    if (const auto held = file->inside().cache.stateid()) stateids.push_back(*held);
  }
  return stateids;
}

void DataPath::layout_stateid_gone(const nfs4::Stateid& stateid) {
  impl_->layouts.lost.remove(stateid);
  for (const FileTable::Entry& file : impl_->files.all()) file->inside().cache.drop_all(stateid);
}

void DataPath::progress() {
  impl_->fabric.completions.progress();
}

void DataPath::ring() {
  impl_->fabric.completions.ring();
}

FlushChains DataPath::flush_chains() {
  return FlushChains(impl_->fabric);
}

int DataPath::completion_fd() {
  return impl_->fabric.completions.fd();
}

void DataPath::arm() {
  impl_->fabric.completions.arm();
}

BufferPool& DataPath::buffers() {
  return impl_->buffers;
}

Result<std::unique_ptr<Buffer>> DataPath::make_buffer(size_t size, Stores meanwhile) {
  return Buffer::allocate(impl_->fabric.transports, size, meanwhile);
}

Result<std::unique_ptr<Buffer>> DataPath::adopt_buffer(MutableByteSpan memory) {
  return Buffer::adopt(impl_->fabric.transports, memory);
}

Result<std::unique_ptr<Buffer>> DataPath::map_buffer(int descriptor, size_t size) {
  return Buffer::map(impl_->fabric.transports, descriptor, size);
}

const Statistics& DataPath::statistics() const {
  return impl_->fabric.statistics;
}

std::vector<DeviceView> DataPath::devices() const {
  std::vector<DeviceView> views;
  for (Device* device : impl_->devices.all()) {
    const Device::View now = device->view();
    DeviceView view{.device = to_hex(device->id())};
    if (now.address) {
      view.durability = to_string(now.address->durability);
      for (const nfs4::DevicePath& path : now.address->paths) view.offered.push_back(to_text(path));
    }
    if (now.connection) {
      view.connected = now.connection->queue_pair.connected();
      view.transport = impl_->fabric.transports[now.connection->transport].transport->name();
      view.address = now.connection->queue_pair.queue_pair().peer();
      view.flush_method = initiator::to_string(now.connection->flush);
      view.choice = now.connection->choice;
      view.in_flight = now.connection->queue_pair.in_flight();
    }
    views.push_back(std::move(view));
  }
  return views;
}

LayoutsView DataPath::layouts() const {
  LayoutsView view;
  for (const FileTable::Entry& file : impl_->files.all()) {
    ++view.known;
    const LayoutCache::Held held = file->inside().cache.held();
    view.files += held.segments > 0 ? 1 : 0;
    view.segments += held.segments;
    view.readable_bytes += held.readable_bytes;
    view.writable_bytes += held.writable_bytes;
  }
  return view;
}

void DataPath::send_held(SteadyTime deadline) {
  impl_->background.post([impl = impl_.get()] { impl->files.flush_held(); });
  impl_->background.run_all(deadline);
}

void DataPath::shut_down(SteadyTime deadline) {
  // In the background, so that a server that does not answer cannot hold us beyond the deadline.
  impl_->background.post([impl = impl_.get(), deadline] {
    for (const FileTable::Entry& file : impl->files.all()) {
      if (impl->fabric.now() >= deadline || impl->fabric.aborted) break;
      file->inside().returner.return_everything();
    }
  });
  impl_->background.run_all(deadline);
  abort();
}

void DataPath::abort() {
  impl_->fabric.aborted = true;
  for (Device* device : impl_->devices.all()) device->abort();
}

}  // namespace pnfsrdma::initiator

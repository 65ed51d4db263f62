// SPDX-License-Identifier: Apache-2.0
#include "server/mds/layout/layout_module.h"

#include <algorithm>
#include <utility>

#include "server/mds/layout/data_service.h"
#include "server/mds/layout/rdma_block_memory.h"
#include "shared/base/log.h"

namespace pnfsrdma::mds {

namespace {

constexpr std::string_view kEpochKey = "epoch";

// Epochs for claims: each higher than any before it, of this run or an earlier one, and durable before it is
// used.
class Epochs {
 public:
  Epochs(KeyValueStore& store, uint64_t first) : store_(store), records_(store), first_(first) {}

  void next(std::function<void(uint64_t)> done) {
    const auto stored = records_.get(RecordKind::kBrick, kEpochKey);
    if (!stored) return log_error("layouts", "epoch-unreadable error=\"{}\"", stored.error().to_string());
    uint64_t last = 0;
    if (*stored && (*stored)->size() == sizeof(last))
      last = load_big_endian<uint64_t>(as_bytes(**stored).data());
    const uint64_t epoch = std::max(first_, last + 1);
    std::byte value[sizeof(epoch)];
    store_big_endian(value, epoch);
    Batch batch;
    Records::put(batch, RecordKind::kBrick, kEpochKey, as_text(value));
    const auto committed = store_.commit(batch, CommitKind::kNamespace);
    if (!committed)
      return log_error("layouts", "epoch-not-stored error=\"{}\"", committed.error().to_string());
    store_.when_synced(*committed, [epoch, done = std::move(done)] { done(epoch); });
  }

 private:
  KeyValueStore& store_;
  Records records_;
  uint64_t first_;
};

}  // namespace

// In the order they are built on each other.
struct LayoutModule::Machinery {
  Machinery(const Parts& parts, const Options& options)
      : epochs(parts.names.store(), options.first_epoch),
        brick(
            parts.loop, parts.brick, parts.space, parts.random,
            [this](std::function<void(uint64_t)> done) { epochs.next(std::move(done)); }, options.owner),
        own_memory(options.memory != nullptr
                       ? nullptr
                       : std::make_unique<RdmaBlockMemory>(parts.loop, brick, options.transports)),
        memory(options.memory != nullptr ? *options.memory : *own_memory),
        space(parts.loop, parts.clock, parts.names, parts.space, brick, memory, table),
        layouts(parts.loop, parts.clock, parts.names, brick, space, table, queue, parts.recaller,
                parts.counters, options.lease),
        granter(parts.names, brick, space, table, queue, layouts, parts.counters, parts.random),
        committer(parts.clock, parts.names, brick, space, layouts),
        io(parts.clock, parts.names, brick, space, table, queue, layouts, memory, options.metadata_era),
        service(brick, parts.space, table, layouts, granter, committer, io) {
    brick.set_hooks(
        {.on_lost =
             [this] {
               layouts.on_brick_lost();
               memory.reset();
             },
         .zero_tails = [this](std::function<void(bool)> done) { layouts.zero_tails(std::move(done)); },
         .on_ready = [this] { layouts.on_brick_ready(); },
         .on_fenced = options.on_fenced});
    space.start_zeroing();
  }

  Epochs epochs;
  InodeQueue queue;
  LayoutTable table;
  BrickDevice brick;
  std::unique_ptr<RdmaBlockMemory> own_memory;
  BlockMemory& memory;
  FileSpace space;
  Layouts layouts;
  LayoutGranter granter;
  LayoutCommitter committer;
  FileIo io;
  DataService service;
};

LayoutModule::LayoutModule(const Parts& parts, Options options)
    : machinery_(std::make_unique<Machinery>(parts, options)) {}
LayoutModule::~LayoutModule() = default;

LayoutConflicts& LayoutModule::conflicts() {
  return machinery_->layouts;
}
DataOperations& LayoutModule::data() {
  return machinery_->service;
}
Layouts& LayoutModule::layouts() {
  return machinery_->layouts;
}
LayoutGranter& LayoutModule::granter() {
  return machinery_->granter;
}
LayoutCommitter& LayoutModule::committer() {
  return machinery_->committer;
}
FileIo& LayoutModule::io() {
  return machinery_->io;
}
const LayoutTable& LayoutModule::table() const {
  return machinery_->table;
}
void LayoutModule::brick_connected() {
  machinery_->brick.connected();
}
void LayoutModule::brick_lost() {
  machinery_->brick.lost();
}
bool LayoutModule::ready() const {
  return machinery_->brick.ready();
}

}  // namespace pnfsrdma::mds

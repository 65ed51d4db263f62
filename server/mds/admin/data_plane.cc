// SPDX-License-Identifier: Apache-2.0
#include "server/mds/admin/data_plane.h"

#include <utility>

#include "server/mds/admin/brick_administration.h"
#include "server/mds/bricks/brick_set.h"
#include "server/mds/layout/layout_adoption.h"
#include "server/mds/layout/snapshot_keeper.h"
#include "server/mds/ops/data_service.h"

namespace pnfsrdma::mds {

// In the order they are built on each other.
struct DataPlane::Machinery {
  Machinery(const Parts& parts, const Options& options)
      : bricks({parts.loop, parts.names.store(), parts.list, parts.random, parts.connect},
               {.first_epoch = options.first_epoch,
                .device = {.owner = options.owner, .patience = options.brick_patience},
                .transports = options.transports,
                .memory = options.memory}),
        space(parts.loop, parts.clock, parts.names, bricks, table,
              [this](InodeId except, const std::optional<QuotaId>& owner, std::function<void()> done) {
                layouts.take_back_ahead(except, owner, std::move(done));
              }),
        records(parts.names.store()),
        layouts(parts.loop, parts.clock, parts.names, bricks, space, table, records, queue, parts.recaller,
                parts.counters, options.lease),
        adoption(parts.loop, parts.clock, parts.names, parts.list, bricks, table, layouts, records),
        granter(parts.names, bricks, space, table, queue, layouts, records, parts.counters, parts.random),
        committer(parts.loop, parts.clock, parts.names, bricks, space, layouts),
        io(parts.loop, parts.clock, parts.names, bricks, space, table, queue, layouts, options.metadata_era),
        ranges(parts.clock, parts.loop, parts.names, bricks, space, table, queue, layouts),
        copies(parts.clock, parts.names, space, io, ranges),
        offloads(parts.loop, copies, parts.counters, options.lease),
        clones(parts.loop, parts.clock, parts.names, bricks, space, queue, layouts, options.clone_slice),
        snapshots(parts.loop, parts.clock, parts.names, space, queue, layouts, io),
        service(bricks, layouts, granter, committer, io, ranges, copies, offloads, clones, paths),
        administration({parts.loop, parts.clock, parts.names.store(), parts.list, bricks, table}) {
    bricks.start(
        {.on_lost = [this](BrickNumber brick) { layouts.on_brick_lost(brick); },
         .adopt =
             [this](BrickNumber brick, const brick::SessionEntry& session, std::vector<brick::Grant> grants,
                    std::function<void(LayoutAdoption::Orphans)> done) {
               adoption.adopt(brick, session, std::move(grants), std::move(done));
             },
         .adopted = [this](BrickNumber brick,
                           std::function<void()> done) { adoption.end(brick, std::move(done)); },
         .zero_tails = [this](BrickNumber brick,
                              std::function<void(bool)> done) { layouts.zero_tails(brick, std::move(done)); },
         .on_ready = [this](BrickNumber) { layouts.on_brick_ready(); },
         .on_fenced = options.on_fenced});
    space.start_zeroing();
  }

  InodeQueue queue;
  LayoutTable table;
  BrickSet bricks;
  FileSpace space;
  LayoutRecords records;
  Layouts layouts;
  LayoutAdoption adoption;
  LayoutGranter granter;
  LayoutCommitter committer;
  FileIo io;
  FileRanges ranges;
  FileCopy copies;
  OffloadedCopies offloads;
  FileClone clones;
  SnapshotKeeper snapshots;
  PathReports paths;
  DataService service;
  BrickAdministration administration;
};

DataPlane::DataPlane(const Parts& parts, Options options)
    : machinery_(std::make_unique<Machinery>(parts, options)) {}
DataPlane::~DataPlane() = default;

Result<> DataPlane::recover(uint64_t run, const std::function<bool(uint64_t client)>& knows) {
  TRY(machinery_->adoption.begin(run, knows));
  return machinery_->snapshots.recover();
}

LayoutConflicts& DataPlane::conflicts() {
  return machinery_->layouts;
}
DataOperations& DataPlane::data() {
  return machinery_->service;
}
Layouts& DataPlane::layouts() {
  return machinery_->layouts;
}
LayoutGranter& DataPlane::granter() {
  return machinery_->granter;
}
LayoutCommitter& DataPlane::committer() {
  return machinery_->committer;
}
FileIo& DataPlane::io() {
  return machinery_->io;
}
FileRanges& DataPlane::ranges() {
  return machinery_->ranges;
}
FileCopy& DataPlane::copies() {
  return machinery_->copies;
}
FileClone& DataPlane::clones() {
  return machinery_->clones;
}
SnapshotKeeper& DataPlane::snapshots() {
  return machinery_->snapshots;
}
const PathReports& DataPlane::paths() const {
  return machinery_->paths;
}
const LayoutTable& DataPlane::table() const {
  return machinery_->table;
}
BrickSet& DataPlane::bricks() {
  return machinery_->bricks;
}
BrickAdministration& DataPlane::brick_administration() {
  return machinery_->administration;
}
bool DataPlane::ready() const {
  return machinery_->bricks.ready();
}

}  // namespace pnfsrdma::mds

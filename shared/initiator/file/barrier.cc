// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/barrier.h"

namespace pnfsrdma::initiator {
nfs4::LayoutReturnArguments file_return(nfs4::IoMode iomode, FileRange range, const nfs4::Stateid& stateid) {
  return {.layout_type = nfs4::kLayoutTypePmem,
          .io_mode = iomode,
          .what = nfs4::LayoutReturnWhat::make<nfs4::LayoutReturnType::kFile>(
              {.offset = range.offset, .length = range.length, .stateid = stateid})};
}

Result<> Barrier::end_unknown(FileRange range, bool committing) {
  const SteadyTime deadline = file_.fabric.io_deadline();
  while (const auto writes = file_.dirty.unknown_in(range)) {
    // A local abort kills nothing that has left this host: only the brick and the MDS can say that it is
    // dead.
    const auto connected = writes->device->connect();
    if (connected && (*connected)->hello.connection != writes->connection) {
      file_.dirty.dead(writes->device);
    } else if (writes->layout_incarnation != file_.cache.incarnation() &&
               take_forgotten(*writes, committing)) {
      file_.dirty.dead(writes->range);
    } else if (!take_from_brick(writes->range, committing, false)) {
      // A return of it is under way, or had no answer: then it is sent again, later.
      const Result<> rested = file_.patience.rest_of_brick(deadline);
      if (!rested &&
          (rested.error().number() != kBrickSilent || !take_from_brick(writes->range, committing, true)))
        return rested;
    }
  }
  return {};
}

bool Barrier::take_from_brick(FileRange range, bool committing, bool again) {
  FileRange gate = range;
  if (!file_.cache.begin_return(nfs4::IoMode::kAny, gate)) {
    if (!again) return false;
    file_.cache.close_gate(gate);
  }
  (void)file_.drain(gate, file_.fabric.now() + 2 * file_.fabric.options.io_timeout);
  if (!committing) tell_first_();
  return return_layout(nfs4::IoMode::kAny, gate, gate);
}

bool Barrier::take_forgotten(const UnknownWrites& writes, bool committing) {
  const auto now = file_.cache.stateid();
  if (now && now->other == writes.layout.other) return take_from_brick(writes.range, committing, true);
  file_.fabric.statistics.layoutreturns.add();
  const auto answer = file_.mds.layout_return(
      file_.reference(true), file_return(nfs4::IoMode::kAny, writes.range, writes.layout), nullptr);
  if (answer) return true;
  return is_void(answer.error().status, writes.layout) && answer.error().status != nfs4::Status::kOldStateid;
}

// A handle that is stale says nothing of the layout: its export may have gone, and its bricks not yet shut us out.
bool Barrier::is_void(nfs4::Status refused, const nfs4::Stateid& layout) {
  if (refused != nfs4::Status::kStale) return is_lost_state(refused);
  const auto tested = file_.mds.test_stateid(layout);
  return tested && is_lost_state(*tested) && *tested != nfs4::Status::kOldStateid;
}

bool Barrier::return_layout(nfs4::IoMode iomode, FileRange gate, FileRange returned) {
  const auto stateid = file_.cache.start_return(iomode, gate, file_.fabric.io_deadline());
  for (int tries = 0; stateid && tries < kStateidTries; ++tries) {
    const auto newest = file_.cache.stateid();
    if (!newest || newest->other != stateid->other) break;
    file_.fabric.statistics.layoutreturns.add();
    std::optional<nfs4::LayoutStatisticsArguments> activity;
    if (file_.tells_activity()) activity = file_.activity.take(*newest);
    const auto answer = file_.mds.layout_return(file_.reference(true), file_return(iomode, returned, *newest),
                                                activity ? &*activity : nullptr);
    if (answer) {
      file_.cache.finish_return(*newest, answer->stateid);
      end_return(iomode, gate, true);
      return true;
    }
    const nfs4::Status refused = answer.error().status;
    if (refused == nfs4::Status::kOldStateid) continue;
    if (!is_void(refused, *newest)) break;
    file_.cache.drop_refused(*newest);  // nothing of it is in force at the server
    file_.cache.finish_return();
    end_return(iomode, gate, true);
    return true;
  }
  file_.cache.finish_return();
  end_return(iomode, gate, false);
  return false;
}

void Barrier::end_bulk_return(FileRange gate, bool answered) {
  // Until the answer no file gets a layout: what there is, is what went.
  const auto stateid = file_.cache.stateid();
  if (answered && stateid) {
    file_.cache.finish_return(*stateid, std::nullopt);
  } else {
    file_.cache.finish_return();
  }
  end_return(nfs4::IoMode::kAny, gate, answered);
}

void Barrier::end_return(nfs4::IoMode iomode, FileRange gate, bool answered) {
  if (answered) file_.dirty.dead(gate);
  file_.cache.open_gate(iomode, gate);
}

}  // namespace pnfsrdma::initiator

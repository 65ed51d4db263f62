// SPDX-License-Identifier: Apache-2.0
#include "shared/initiator/file/returner.h"

#include "shared/base/log.h"

namespace pnfsrdma::initiator {

Result<> Returner::prepare_return(FileRange gate, bool changed) {
  // I/O ends by its own deadline; twice that is for the connection that has to be given up.
  if (!file_.drain(gate, file_.fabric.now() + 2 * file_.fabric.options.io_timeout)) {
    log_error("initiator", "drain-timeout offset={} length={}", gate.offset, gate.length);
  }
  // clora_changed: the layout is void already, what was written under it is not wanted there.
  if (changed) {
    file_.dirty.void_growth();
    return {};
  }
  const Result<> flushed_all = flusher_.flush(true);
  const Result<> told = committer_.commit_for_return();
  for (const Result<>& outcome : {flushed_all, told}) {
    if (!outcome) log_warning("initiator", "return-incomplete error=\"{}\"", outcome.error().to_string());
  }
  return told;
}

void Returner::give_back(nfs4::IoMode iomode, FileRange gate, FileRange returned, bool changed) {
  // What the server has not been told of by now it zeroes at the return.
  if (!prepare_return(gate, changed)) committer_.void_growth();
  (void)barrier_.return_layout(iomode, gate, returned);
}

void Returner::begin_bulk_return(FileRange gate, bool changed) {
  if (!prepare_return(gate, changed)) committer_.void_growth();
  (void)file_.cache.start_return(nfs4::IoMode::kAny, gate, file_.fabric.io_deadline());
}

void Returner::end_bulk_return(FileRange gate, bool answered) {
  barrier_.end_bulk_return(gate, answered);
}

void Returner::return_everything() {
  FileRange gate{0, UINT64_MAX};
  if (file_.cache.begin_return(nfs4::IoMode::kAny, gate))
    give_back(nfs4::IoMode::kAny, gate, {0, UINT64_MAX}, false);
  // What went through the MDS, or under a layout that is lost.
  if (!flusher_.to_be_flushed()) return;
  Result<> outcome = through_mds_.check_server();
  if (outcome) outcome = flusher_.flush(false);
  if (outcome) return;
  if (outcome.error().number() == ESTALE) {
    file_.dirty.forget_unflushed();  // the file has been removed: nobody will ask for it again
    return;
  }
  log_warning("initiator", "flush-incomplete error=\"{}\"", outcome.error().to_string());
}

}  // namespace pnfsrdma::initiator

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "shared/initiator/file/file_state.h"

namespace pnfsrdma::initiator {

// LAYOUTRETURN of a part of one file.
nfs4::LayoutReturnArguments file_return(nfs4::IoMode iomode, FileRange range, const nfs4::Stateid& stateid);

// Takes care that no WRITE which was posted can arrive any more where something else is to be written:
// because its connection is dead at the brick, or because the MDS has answered the LAYOUTRETURN of its
// layout. It flushes and commits nothing by itself, for both may have to wait for it. Waits for bricks and
// the MDS. Thread-safe; without a state of its own.
class Barrier {
 public:
  // Has the MDS told of the growth before its layout goes back, or has it void.
  using TellFirst = std::function<void()>;
  Barrier(FileState& file, TellFirst tell_first) : file_(file), tell_first_(std::move(tell_first)) {}

  // No WRITE that was posted there can arrive any more: it would come over what goes through the MDS now.
  // `committing`: by whoever has claimed the commit. Error: kBrickSilent, or nobody wants to know any more.
  Result<> end_unknown(FileRange range, bool committing);
  // The segments of `gate` are forgotten and LAYOUTRETURN is sent. True: nothing of it is in force any more.
  bool return_layout(nfs4::IoMode iomode, FileRange gate, FileRange returned);
  // The end of it, where one LAYOUTRETURN was for all files.
  void end_bulk_return(FileRange gate, bool answered);

 private:
  void end_return(nfs4::IoMode iomode, FileRange gate, bool answered);
  // By ourselves, from a brick that does not answer: so nothing is flushed there. True: it is returned.
  // `again`: also if it is not held any more.
  bool take_from_brick(FileRange range, bool committing, bool again);
  // The same of a layout that is not held any more: a new session has it forgotten here, but not at the
  // server if that knows the client still. True: it is not in force there.
  bool take_forgotten(const UnknownWrites& writes, bool committing);
  // Its return was refused because nothing of it is in force at the server.
  bool is_void(nfs4::Status refused, const nfs4::Stateid& layout);

  FileState& file_;
  const TellFirst tell_first_;
};

}  // namespace pnfsrdma::initiator

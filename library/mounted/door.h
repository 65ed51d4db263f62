// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "library/mounted/mapping.h"
#include "shared/base/owned.h"
#include "shared/base/result.h"
#include "shared/base/sync.h"
#include "shared/ring/control.h"

namespace pnfsrdma::library::mounted {

// Asks the mount that the directory is on. What an Error says names cause and fix; ENOTSUP: there is none, or it does
// not let programs in.
Result<ring::Find> find_mount(int directory, std::string_view path);

// What connects this process with that of a mount: a socket, the rings' memory, a doorbell for each side. Thread-safe.
class Door {
 public:
  // Of the mount that listens there, with its token. Errors: ECONNREFUSED, EPROTO, and what the mount says.
  static Result<std::unique_ptr<Door>> open(std::string_view socket, const ring::Secret& token = {});

  MutableByteSpan rings() const { return rings_.bytes(); }
  uint32_t depth() const { return depth_; }
  int doorbell() const { return doorbell_.get(); }  // the mount's
  int event() const { return event_.get(); }        // the program's
  int socket() const { return socket_.get(); }      // hung up when the mount is gone
  const ring::Secret& secret() const { return secret_; }

  // `memory`: of a memfd that cannot shrink. Its number in submissions.
  Result<uint32_t> add_memory(int memory);
  // A connected socket, to which the mount sends events: its number for kWatch. EINVAL: a mount of before.
  Result<uint32_t> add_channel(int socket);
  // Nothing is under way from or to it.
  void remove_memory(uint32_t number);

  // The mount's process has ended, or has put us out.
  bool is_closed() const;

 private:
  Door(FileDescriptor socket, FileDescriptor doorbell, FileDescriptor event, Mapping rings, uint32_t depth,
       const ring::Secret& secret);

  const FileDescriptor socket_, doorbell_, event_;
  const Mapping rings_;
  const uint32_t depth_;
  const ring::Secret secret_;
  Mutex asking_;  // one request at a time
};

}  // namespace pnfsrdma::library::mounted

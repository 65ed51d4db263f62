// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fuse-client/beliefs.h"
#include "fuse-client/callbacks.h"
#include "fuse-client/close_queue.h"
#include "fuse-client/delegations.h"
#include "fuse-client/file_opens.h"
#include "fuse-client/inode_table.h"
#include "fuse-client/lock_calls.h"
#include "fuse-client/reclaimer.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session_mds.h"

namespace pnfsrdma::sim {

// A file as a server that asks for opens knows it. In the root it has one of two names.
struct ServedFile {
  nfs4::FileHandle handle;
  std::string name, other_name, second_name;
};

// What a mount knows of its files: the parts of fuse-client that know no kernel, and this in the kernel's place. Each
// call is one of the kernel's, on the caller's fiber, as long as it takes.
class ClientFiles {
 public:
  using Inode = fuse_client::Inode;

  // All outlive it. `delegates`: it asks for delegations.
  ClientFiles(initiator::Session& session, initiator::SessionMds& mds, initiator::DataPath& data_path,
              const Clock& clock, const nfs4::FileHandle& root, bool delegates);
  // Before the data path is shut down.
  void end();

  struct Opened {
    std::shared_ptr<Inode> inode;
    std::shared_ptr<initiator::FileIo> data;
    client::FileAttributes attributes;
  };
  Opened open(const ServedFile& file, bool writes);
  // What the mount shows under its root by these names; an errno.
  struct Found {
    nfs4::FileHandle handle;
    uint64_t number = 0;
  };
  std::expected<Found, int> find(const std::vector<std::string>& path);
  // To read. By its handle alone, as of a snapshot, of which nothing changes.
  std::expected<Opened, int> open_found(const Found& file);
  // Each Opened once; its file is still held by who releases it.
  void release(const std::shared_ptr<Inode>& inode);
  // As stat(2).
  client::FileAttributes attributes(const ServedFile& file);
  // The server is asked.
  client::FileAttributes refresh(Inode& inode);
  // As chown(2). False: it was done or not.
  bool set_group(const ServedFile& file, gid_t group);
  // As rename(2), from the name it has to the other one.
  void rename(const ServedFile& file);
  // As link(2) and unlink(2).
  void link_for_a_moment(const ServedFile& file);
  // As fcntl(2) with F_SETLK, of a file that is open. An errno.
  int lock(const std::shared_ptr<Inode>& inode, fuse_client::LockOwner owner, const nfs4::LockRange& range);
  int unlock(Inode& inode, fuse_client::LockOwner owner, const nfs4::LockRange& range);
  // The kernel forgets it; nobody has it open.
  void forget(const ServedFile& file);

  // What becomes of attributes that another call has brought.
  fuse_client::Question ask(const Inode& inode) const { return beliefs_.ask(&inode); }
  void learn(Inode& inode, const fuse_client::Question& question, const nfs4::Attributes& attributes);

  fuse_client::Delegations::Counts counts() const { return delegations_.counts(); }
  bool delegates() const { return delegates_; }
  // Nobody believes attributes for longer.
  static constexpr fuse_client::AttributeTimeouts kTimeouts{.file_min = std::chrono::seconds(1),
                                                            .file_max = std::chrono::seconds(2),
                                                            .directory_min = std::chrono::seconds(1),
                                                            .directory_max = std::chrono::seconds(2)};

 private:
  // What the kernel knows of one.
  struct Known {
    std::shared_ptr<Inode> inode;
    uint64_t lookups = 0;
  };
  std::shared_ptr<Inode> known(const ServedFile& file);
  std::shared_ptr<Inode> look_up(const ServedFile& file);
  bool look_up(const ServedFile& file, const std::string& name);
  void names_changed(Inode& inode, const fuse_client::Question& asked);

  initiator::Session& session_;
  const Clock& clock_;
  const bool delegates_;
  const fuse_client::AttributeTimeouts timeouts_ = kTimeouts;
  fuse_client::InodeTable inodes_;
  fuse_client::CloseQueue closes_;
  fuse_client::Delegations delegations_;
  fuse_client::LockCalls lock_calls_;
  fuse_client::Beliefs beliefs_;
  fuse_client::FileOpens opens_;
  fuse_client::Reclaimer reclaimer_;
  fuse_client::Callbacks callbacks_;
  std::map<nfs4::FileHandle, Known> known_;
};

}  // namespace pnfsrdma::sim

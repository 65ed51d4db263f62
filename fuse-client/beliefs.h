// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "fuse-client/delegations.h"
#include "fuse-client/inode.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// When attributes were asked for, and what was known then: answers may overtake each other and local
// writes.
struct Question {
  SteadyTime asked_at;
  uint64_t name_changes = 0;
  std::shared_ptr<initiator::FileIo> data;
  uint64_t data_version = 0;
  // Of the inode: data_paths(), data_changes_count().
  uint64_t data_paths = 0;
  uint64_t data_changes = 0;
  uint64_t delegation_era = 0;
};

// What the mount believes of its files without asking, and how an answer of the server changes that. The kernel has no
// part in it: the simulator runs it, too (tests/sim). Thread-safe; waits for nothing.
class Beliefs {
 public:
  // All outlive it.
  Beliefs(const Clock& clock, const initiator::Session& session, const Delegations& delegations,
          const AttributeTimeouts& timeouts)
      : clock_(clock), session_(session), delegations_(delegations), timeouts_(timeouts) {}

  // Before each call that brings attributes. Null: it is not known yet of which file.
  Question ask(const Inode* inode) const;
  // What the answer says. How long the kernel may believe it.
  Milliseconds learn(Inode& inode, const Question& question, const client::FileAttributes& attributes,
                     bool of_own_change = false) const;
  // The same of the answer to a commit or write of ours. `changed`: by that alone.
  void learn_with_write(Inode& inode, const nfs4::Attributes& attributes, SteadyTime asked_at,
                        bool changed) const;
  void judge_pages(Inode& inode, const Question& question, const client::FileAttributes& attributes,
                   bool of_own_change = false) const;
  // What can be said of the file without the server. None: ask.
  std::optional<Inode::Believed> believed(const Inode& inode, SteadyTime now) const;
  // Until then delegations are believed.
  SteadyTime lease_end() const { return session_.lease_end(); }
  // What this client has written and not committed is newer than the server's word.
  static client::FileAttributes with_local_view(const Inode& inode, client::FileAttributes attributes);

  // An operation of ours on names was answered. Its number: Inode::name_changed().
  uint64_t name_changed() { return ++name_changes_; }
  // By that one some file with several has lost a link; nobody here knows which.
  void link_lost(uint64_t number);

 private:
  const Clock& clock_;
  const initiator::Session& session_;
  const Delegations& delegations_;
  const AttributeTimeouts& timeouts_;
  // Operations on names that were answered, and the newest of them of link_lost().
  std::atomic<uint64_t> name_changes_ = 0;
  std::atomic<uint64_t> lost_link_ = 0;
};

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>

#include "fuse-client/beliefs.h"
#include "fuse-client/close_queue.h"
#include "fuse-client/delegations.h"
#include "fuse-client/inode.h"
#include "shared/initiator/data_path.h"
#include "shared/initiator/session/session.h"

namespace pnfsrdma::fuse_client {

// The opens of files, at the server or under a delegation: what is asked, and what the answer means for the inode.
// The kernel has no part in it: the simulator runs it, too (tests/sim). Thread-safe; makes no calls.
class FileOpens {
 public:
  // All outlive it.
  FileOpens(initiator::Session& session, initiator::DataPath& data_path, Delegations& delegations,
            CloseQueue& closes, const Beliefs& beliefs, const Clock& clock, const AttributeTimeouts& timeouts)
      : session_(session),
        data_path_(data_path),
        delegations_(delegations),
        closes_(closes),
        beliefs_(beliefs),
        clock_(clock),
        timeouts_(timeouts) {}

  // PUTFH, OPEN (CLAIM_FH), GETATTR; by name with PUTFH, LOOKUP, VERIFY of the filehandle in front, so that no other
  // file is opened than the one that is meant. `may_delegate`: this host decides who may.
  struct Request {
    initiator::Session::Operations operations;
    size_t open_at = 0;
  };
  Request request(const Inode& file, const Inode::Name* name, uint32_t share_access, bool may_delegate) const;
  static nfs4::OpenArguments arguments(uint32_t share_access,
                                       uint32_t want = nfs4::kShareAccessWantNoDelegation);

  struct Opened {
    client::FileAttributes attributes;
    std::shared_ptr<initiator::FileIo> data;
    bool is_first =
        false;  // there was no data path when the server was asked: nothing was written through another
  };
  // Behind Inode::begin_open(), each; whoever has one calls close_if_last(Inode::release()) some day.
  // 0 calls: nobody else can have changed the file, and its open at the server is still there. None: ask.
  std::optional<Opened> under_delegation(const std::shared_ptr<Inode>& inode,
                                         const initiator::Credential& user, uint32_t share_access) const;
  // The server has granted it.
  struct Granted {
    nfs4::OpenResult open;
    nfs4::Attributes attributes;
    uint32_t share_access = 0;
    bool refused = false;  // but not to this caller
    // The file was created by it, for that caller's access: at the server it may be open for more.
    std::optional<uint32_t> created_for;
  };
  // An errno: nothing is open.
  std::expected<Opened, int> granted(const std::shared_ptr<Inode>& inode, const Question& question,
                                     const Granted& grant, const initiator::Credential& credential) const;
  // Whoever leaves last, an open that failed too, settles the data; the CLOSE follows with others.
  void close_if_last(const std::shared_ptr<Inode>& inode, bool last) const;

 private:
  void take_delegation(const std::shared_ptr<Inode>& inode, const Question& question, const Granted& grant,
                       const initiator::Credential& user) const;

  initiator::Session& session_;
  initiator::DataPath& data_path_;
  Delegations& delegations_;
  CloseQueue& closes_;
  const Beliefs& beliefs_;
  const Clock& clock_;
  const AttributeTimeouts& timeouts_;
};

}  // namespace pnfsrdma::fuse_client

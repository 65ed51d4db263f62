// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/mds/meta/namespace.h"
#include "server/mds/state/callback_channel.h"
#include "server/mds/state/counters.h"
#include "server/mds/state/delegation_table.h"
#include "server/mds/state/open_state.h"
#include "server/mds/state/recaller.h"

namespace pnfsrdma::mds {

class HandleKeys;

// What the layout module needs of clients and opens, over the backchannel and the tables. Control loop only.
class LayoutCallbacks final : public LayoutRecaller {
 public:
  LayoutCallbacks(CallbackChannel& channel, ClientTable& clients, const OpenTable& opens,
                  const DelegationTable& delegations, Namespace& names, const HandleKeys& handles);

  void recall_layout(const LayoutRecall& recall, std::function<void(RecallAnswer)> done) override;
  void recall_any(uint64_t client, uint32_t keep) override;
  void layouts_revoked(uint64_t client) override;
  void revoked_layouts_freed(uint64_t client) override;
  // Or, by a delegation, may have it open unknown to us.
  bool is_open(uint64_t inode) const override {
    return opens_.is_open(inode) || delegations_.is_delegated(inode);
  }
  bool is_open_by(uint64_t inode, uint64_t client) const override;
  bool is_written_by_others(uint64_t inode, uint64_t client) const override;
  uint32_t stateid_window(uint64_t client) const override;

 private:
  CallbackChannel& channel_;
  ClientTable& clients_;
  const OpenTable& opens_;
  const DelegationTable& delegations_;
  Namespace& names_;
  const HandleKeys& handles_;
};

}  // namespace pnfsrdma::mds

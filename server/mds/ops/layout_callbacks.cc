// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/layout_callbacks.h"

#include "server/mds/ops/handle_keys.h"
#include "server/mds/state/session.h"
#include "shared/nfs4/pmem_layout.h"

namespace pnfsrdma::mds {

using nfs4::Status;

namespace {

RecallAnswer recall_answer(const CallbackChannel::Answer& answer) {
  if (!answer) return RecallAnswer::kUnreachable;
  switch (nfs4::status_of(*answer)) {
    case Status::kOk:
      return RecallAnswer::kAccepted;
    case Status::kNomatchingLayout:
      return RecallAnswer::kNoMatching;
    case Status::kDelay:
      return RecallAnswer::kDelay;
    default:
      return RecallAnswer::kUnreachable;
  }
}

}  // namespace

LayoutCallbacks::LayoutCallbacks(CallbackChannel& channel, ClientTable& clients, const OpenTable& opens,
                                 const DelegationTable& delegations, Namespace& names,
                                 const HandleKeys& handles)
    : channel_(channel),
      clients_(clients),
      opens_(opens),
      delegations_(delegations),
      names_(names),
      handles_(handles) {}

// RFC 8881, 20.3
void LayoutCallbacks::recall_layout(const LayoutRecall& recall, std::function<void(RecallAnswer)> done) {
  nfs4::LayoutRecallFile file;
  const auto inode = names_.get(recall.inode);
  // The filehandle has to be, byte for byte, the one the client knows the file by.
  file.file_handle = handles_.encode({.export_id = recall.export_id,
                                      .inode = recall.inode,
                                      .generation = inode ? (*inode)->generation : recall.generation,
                                      .old = recall.old_handle});
  file.offset = recall.offset;
  file.length = recall.length;
  file.stateid = {recall.stateid.seqid, recall.stateid.other};
  nfs4::CallbackLayoutRecallArguments arguments;
  arguments.layout_type = nfs4::kLayoutTypePmem;
  arguments.io_mode = static_cast<nfs4::IoMode>(recall.iomode);
  arguments.changed = recall.changed;
  arguments.what = nfs4::LayoutRecallWhat::make<nfs4::LayoutRecallType::kFile>(std::move(file));
  auto call = [this, client = recall.client, arguments = std::move(arguments), done = std::move(done)] {
    channel_.call(client, arguments,
                  [done](const CallbackChannel::Answer& answer) { done(recall_answer(answer)); });
  };
  // As a reply does: the new seqid is on record, but perhaps not written yet.
  KeyValueStore& store = names_.store();
  if (store.written(store.last_sequence())) return call();
  store.when_written(std::move(call));
}

// RFC 8881, 20.6. The registry has no bit for layout types from the private range but those of "other" ones.
void LayoutCallbacks::recall_any(uint64_t client, uint32_t keep) {
  nfs4::CallbackRecallAnyArguments arguments;
  arguments.objects_to_keep = keep;
  arguments.types.set(nfs4::kRecallAnyOtherLayoutMin);
  channel_.call(client, std::move(arguments), [](const CallbackChannel::Answer&) {});
}

void LayoutCallbacks::layouts_revoked(uint64_t id) {
  if (const auto client = clients_.find(id)) client->status_flags |= nfs4::kSequenceRecallableStateRevoked;
}

void LayoutCallbacks::revoked_layouts_freed(uint64_t id) {
  if (const auto client = clients_.find(id)) client->status_flags &= ~nfs4::kSequenceRecallableStateRevoked;
}

bool LayoutCallbacks::is_open_by(uint64_t inode, uint64_t client) const {
  return opens_.access_of_client(inode, client) != 0 || delegations_.find(inode, client) != nullptr;
}

bool LayoutCallbacks::is_written_by_others(uint64_t inode, uint64_t client) const {
  return opens_.is_written_by_others(inode, client) || delegations_.may_be_written_by_others(inode, client);
}

uint32_t LayoutCallbacks::stateid_window(uint64_t id) const {
  uint32_t window = 0;
  if (const auto client = clients_.find(id)) {
    for (Session* session : client->sessions) window += session->fore().max_operations - 1;
  }
  return window;
}

}  // namespace pnfsrdma::mds

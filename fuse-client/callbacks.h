// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>

#include "fuse-client/delegations.h"
#include "fuse-client/inode_table.h"
#include "shared/initiator/data_path.h"

namespace pnfsrdma::fuse_client {

// What the server asks of the mount: layouts are the data path's, delegations go by the file, locks are whose requests
// wait for them.
// Owned by the mount.
class Callbacks final : public initiator::CallbackHandler {
 public:
  // `lock_looks_free`: of that file.
  Callbacks(initiator::DataPath& data_path, const InodeTable& inodes, Delegations& delegations,
            std::function<void(const Inode&)> lock_looks_free)
      : data_path_(data_path),
        inodes_(inodes),
        delegations_(delegations),
        lock_looks_free_(std::move(lock_looks_free)) {}

  initiator::CallbackAnswer layout_recall(const nfs4::CallbackLayoutRecallArguments& arguments) override {
    return data_path_.layout_recall(arguments);
  }
  initiator::CallbackAnswer recall(const nfs4::CallbackRecallArguments& arguments) override {
    const bool may_be_new = delegations_.is_creating();
    return delegations_.recall(inodes_.find(arguments.file_handle), arguments.file_handle, arguments.stateid,
                               may_be_new);
  }
  // RFC 8881, 10.4.3: a change that the server does not know is told by another change attribute, always the same.
  nfs4::CallbackGetAttributesResponse get_attributes(
      const nfs4::CallbackGetAttributesArguments& arguments) override {
    const auto inode = inodes_.find(arguments.file_handle);
    const auto told = inode ? inode->told_of_held() : std::nullopt;
    if (!told) return nfs4::Status::kBadHandle;
    const auto data = inode->data();
    const bool is_changed = data && data->local_attributes().modified;
    nfs4::CallbackGetAttributesResult result;
    result.attributes.size = data ? data->size() : static_cast<uint64_t>(told->status.st_size);
    result.attributes.change = told->change + (is_changed ? 1 : 0);
    return result;
  }
  initiator::CallbackAnswer recall_any(const nfs4::CallbackRecallAnyArguments& arguments) override {
    if (arguments.types.test(nfs4::kRecallAnyReadDelegation) ||
        arguments.types.test(nfs4::kRecallAnyWriteDelegation) ||
        arguments.types.test(nfs4::kRecallAnyDirectoryDelegation)) {
      delegations_.keep(arguments.objects_to_keep);
    }
    return data_path_.recall_any(arguments);
  }
  initiator::CallbackAnswer notify_deviceid(const nfs4::CallbackNotifyDeviceIdArguments& arguments) override {
    return data_path_.notify_deviceid(arguments);
  }
  initiator::CallbackAnswer notify_lock(const nfs4::CallbackNotifyLockArguments& arguments) override {
    if (const auto inode = inodes_.find(arguments.file_handle)) lock_looks_free_(*inode);
    return {};
  }

 private:
  initiator::DataPath& data_path_;
  const InodeTable& inodes_;
  Delegations& delegations_;
  const std::function<void(const Inode&)> lock_looks_free_;
};

}  // namespace pnfsrdma::fuse_client

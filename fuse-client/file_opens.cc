// SPDX-License-Identifier: Apache-2.0
#include "fuse-client/file_opens.h"

#include <cerrno>
#include <utility>

#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::fuse_client {
namespace {

// This is the first data path since the question, and nothing was written through it: it may have outlived the kernel's
// memory of the file.
bool is_first_since(const Inode& inode, const Question& question, const initiator::FileIo& data) {
  return inode.data_paths() == question.data_paths + 1 &&
         data.local_version() == initiator::FileIo::kFirstVersion;
}

}  // namespace

nfs4::OpenArguments FileOpens::arguments(uint32_t share_access, uint32_t want) {
  nfs4::OpenArguments open;
  open.share_access = share_access | want;
  open.share_deny = nfs4::kShareDenyNone;
  open.owner.owner = nfs4::OwnerId(as_bytes("pnfsrdma-fuse"));
  return open;
}

FileOpens::Request FileOpens::request(const Inode& file, const Inode::Name* name, uint32_t share_access,
                                      bool may_delegate) const {
  Request made;
  if (name != nullptr) {
    nfs4::VerifyArguments same;
    same.attributes.file_handle = file.handle;
    made.operations = {nfs4::PutFileHandleArguments{name->directory->handle},
                       nfs4::LookupArguments{name->name}, std::move(same)};
  } else {
    made.operations = {nfs4::PutFileHandleArguments{file.handle}};
  }
  made.open_at = made.operations.size();
  // By name only: the server then has just said that the name leads here, and tells before it leads elsewhere.
  const bool may_want = name != nullptr && may_delegate && timeouts_.file_min > std::chrono::seconds(0);
  nfs4::OpenArguments open = arguments(
      share_access, may_want ? file.wanted_delegation(share_access) : nfs4::kShareAccessWantNoDelegation);
  open.claim = nfs4::OpenClaim::make<nfs4::ClaimType::kFileHandle>();
  made.operations.emplace_back(std::move(open));
  made.operations.emplace_back(nfs4::GetAttributesArguments{client::open_attributes()});
  return made;
}

std::optional<FileOpens::Opened> FileOpens::under_delegation(const std::shared_ptr<Inode>& inode,
                                                             const initiator::Credential& user,
                                                             uint32_t share_access) const {
  const Question question = beliefs_.ask(inode.get());
  const auto attributes =
      inode->open_under_delegation(user, share_access, clock_.now(), session_.lease_end());
  if (!attributes) return std::nullopt;
  delegations_.used(*inode);
  Opened opened{.attributes = *attributes, .data = nullptr};
  opened.data = data_path_.open(inode->handle, *inode, static_cast<uint64_t>(attributes->status.st_size));
  inode->set_data(opened.data);
  // The one before may be on its way out: the last close has told all that was written by it.
  if (is_first_since(*inode, question, *opened.data))
    inode->data_is_as_known(initiator::FileIo::kFirstVersion);
  return opened;
}

void FileOpens::take_delegation(const std::shared_ptr<Inode>& inode, const Question& question,
                                const Granted& grant, const initiator::Credential& user) const {
  inode->admit(user, grant.share_access, question.asked_at);
  FileDelegation::Grant taken{.times = {.asked_at = question.asked_at, .answered_at = clock_.now()},
                              .opener = user};
  bool recalled = false;
  if (const auto* to_read = grant.open.delegation.get_if<nfs4::DelegationType::kRead>()) {
    taken.stateid = to_read->stateid;
    recalled = to_read->recall;
  } else if (const auto* to_write = grant.open.delegation.get_if<nfs4::DelegationType::kWrite>()) {
    taken.stateid = to_write->stateid;
    taken.allows = nfs4::kShareAccessBoth;
    recalled = to_write->recall;
  } else {
    return;
  }
  taken.change = grant.attributes.change.value_or(0);
  taken.with_creation = grant.created_for.has_value();
  delegations_.take(inode, taken, question.delegation_era);
  if (recalled) delegations_.end(inode);
}

std::expected<FileOpens::Opened, int> FileOpens::granted(const std::shared_ptr<Inode>& inode,
                                                         const Question& question, const Granted& grant,
                                                         const initiator::Credential& credential) const {
  // In this order: while the OPEN is under way, a recall of what it brings has to wait.
  take_delegation(inode, question, grant, credential);
  inode->opened(grant.open.stateid, grant.share_access, credential, grant.created_for);
  const auto attributes = client::to_file_attributes(grant.attributes);
  if (!attributes || grant.refused) {
    close_if_last(inode, inode->release());
    return std::unexpected(attributes ? EACCES : nfs4::to_errno(attributes.error()));
  }
  Opened opened{.attributes = *attributes, .data = nullptr};
  const auto size = static_cast<uint64_t>(attributes->status.st_size);
  opened.data = data_path_.open(inode->handle, *inode, size);
  // It may be open already, and another client may have grown or cut it since.
  if (opened.data == question.data) opened.data->server_size(size, question.data_version, question.asked_at);
  inode->set_data(opened.data);
  opened.is_first = !question.data && is_first_since(*inode, question, *opened.data);
  // Close-to-open: pages survive only if nobody else changed the file since, and the kernel must not go by an
  // old size.
  beliefs_.judge_pages(*inode, question, *attributes);
  // Without data when it was asked the version is 0, which no data path has.
  const uint64_t version = opened.is_first ? initiator::FileIo::kFirstVersion : question.data_version;
  (void)inode->learn(*attributes, question.asked_at, timeouts_,
                     Inode::Versions{version, question.name_changes});
  return opened;
}

void FileOpens::close_if_last(const std::shared_ptr<Inode>& inode, bool last) const {
  if (!last) return;
  if (const auto data = inode->data()) {
    data->release();
    inode->data_settled(data->local_version());
  }
  if (!inode->settled()) return closes_.add(inode);
  if (inode->delegation_ends_with_close()) delegations_.end(inode, CloseQueue::When::kWithOthers);
}

}  // namespace pnfsrdma::fuse_client

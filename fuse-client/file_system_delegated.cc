// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "fuse-client/file_system.h"

// Delegations of directories (RFC 8881, 10.9): asked for with a call that is made anyway.
namespace pnfsrdma::fuse_client {

using nfs4::Status;

namespace {

constexpr size_t kDelegationAt = 1;

// It failed at that operation: the server knows none such.
bool knows_no_such(const initiator::CompoundReply& reply) {
  const bool is_there = reply.results.size() == kDelegationAt + 1;
  return is_there && (reply.status == Status::kNotSupp || reply.status == Status::kOpIllegal);
}

std::optional<nfs4::Stateid> delegation_in(const initiator::CompoundReply& reply) {
  const auto* answer = reply.result<nfs4::GetDirectoryDelegationResponse>(kDelegationAt);
  const auto* given =
      answer != nullptr ? answer->outcome.get_if<nfs4::DirectoryDelegationStatus::kOk>() : nullptr;
  return given != nullptr ? std::optional(given->stateid) : std::nullopt;
}

}  // namespace

FileSystem::DirectoryCall FileSystem::call_directory(fuse_req_t request,
                                                     const std::shared_ptr<Inode>& directory,
                                                     Inode::AskedFor what, const Operations& operations) {
  const bool may_want = parts_.names.believes_absent() && server_delegates_directories_ &&
                        parts_.options.attributes.file_min > std::chrono::seconds(0);
  bool wants = may_want && directory->wants_directory_delegation(what, parts_.clock.now());
  for (;;) {
    DirectoryCall called;
    Operations all{nfs4::PutFileHandleArguments{directory->handle}};
    if (wants) all.emplace_back(nfs4::GetDirectoryDelegationArguments{});
    called.at = all.size();
    all.insert(all.end(), operations.begin(), operations.end());
    if (wants) directory->begin_asking();
    called.question = ask(nullptr);
    // If an operation behind it is answered DELAY all is sent again, and then there is one already.
    const std::function<void(const CompoundReply&)> take_result = [&](const CompoundReply& so_far) {
      if (const auto given = delegation_in(so_far)) called.delegation = given;
    };
    initiator::CallOptions options;
    options.on_repetition = &take_result;
    called.error = call(request, std::move(all), called.reply, options);
    if (!wants) return called;
    take_result(called.reply);
    take_directory_delegation(directory, called, credential(request));
    directory->end_asking();
    wants = false;
    const bool failed_there = !called.reply.ok() && called.reply.results.size() == kDelegationAt + 1;
    if (knows_no_such(called.reply)) server_delegates_directories_ = false;
    if (!failed_there) return called;
  }
}

// While it is asked for, a recall of it has to wait.
void FileSystem::take_directory_delegation(const std::shared_ptr<Inode>& directory,
                                           const DirectoryCall& called, const initiator::Credential& user) {
  const SteadyTime now = parts_.clock.now();
  if (!called.delegation) return directory->directory_delegation_refused(now);
  parts_.delegations.take(directory,
                          {.stateid = *called.delegation,
                           .allows = nfs4::kShareAccessRead,
                           .times = {.asked_at = called.question.asked_at, .answered_at = now},
                           .opener = user},
                          called.question.delegation_era);
}

bool FileSystem::refresh_page(fuse_req_t request, const std::shared_ptr<Inode>& directory,
                              std::string_view name) {
  const auto kept = parts_.listings.find(directory->node);
  if (!kept) return false;
  const auto at = std::ranges::find(kept->entries, name, &ListedEntry::name);
  if (at == kept->entries.end()) return false;
  const uint64_t cookie = at == kept->entries.begin() ? 0 : std::prev(at)->cookie;
  const Question question = ask(nullptr);
  CompoundReply reply;
  const int error = call(request,
                         {nfs4::PutFileHandleArguments{directory->handle},
                          nfs4::GetAttributesArguments{client::stat_attributes()},
                          read_directory(cookie, cookie == 0 ? nfs4::Verifier{} : kept->verifier)},
                         reply);
  learn_directory(*directory, question, reply, 1);
  const auto* before = reply.result<nfs4::GetAttributesResponse>(1);
  const auto* page = reply.result<nfs4::ReadDirectoryResponse>(2);
  if (error != 0 || before == nullptr || page == nullptr) return false;
  return !learn_page(directory, question, before->attributes.change, *page).empty();
}

}  // namespace pnfsrdma::fuse_client

// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/done_operations.h"

#include "server/mds/ops/delegation_grant.h"
#include "server/mds/ops/exports.h"
#include "server/mds/ops/open_result.h"
#include "server/mds/state/delegations.h"

namespace pnfsrdma::mds {

using nfs4::Operation;
using nfs4::Status;

namespace {

// What it was before the change nobody knows any more: not atomic, so the client asks (RFC 8881, 3.3.12).
Outcome<nfs4::ChangeInfo> change_now(CompoundContext& context, const std::optional<ObjectHandle>& handle) {
  if (!handle) return std::unexpected(Status::kNoFileHandle);
  nfs4::ChangeInfo change;
  // The directory itself may be gone since.
  if (const auto inode = context.services.names.get(handle->inode))
    change = {.atomic = false, .before = 0, .after = (*inode)->change};
  return change;
}

nfs4::RemoveResponse done(CompoundContext& context, const nfs4::RemoveArguments&) {
  TRY_ASSIGN(const nfs4::ChangeInfo change, change_now(context, context.current.handle));
  return nfs4::RemoveResult{change};
}

nfs4::LinkResponse done(CompoundContext& context, const nfs4::LinkArguments&) {
  TRY_ASSIGN(const nfs4::ChangeInfo change, change_now(context, context.current.handle));
  return nfs4::LinkResult{change};
}

nfs4::RenameResponse done(CompoundContext& context, const nfs4::RenameArguments&) {
  TRY_ASSIGN(const nfs4::ChangeInfo source, change_now(context, context.saved.handle));
  TRY_ASSIGN(const nfs4::ChangeInfo target, change_now(context, context.current.handle));
  return nfs4::RenameResult{source, target};
}

nfs4::SetXattrResponse done(CompoundContext& context, const nfs4::SetXattrArguments&) {
  TRY_ASSIGN(const nfs4::ChangeInfo change, change_now(context, context.current.handle));
  return nfs4::SetXattrResult{change};
}

nfs4::RemoveXattrResponse done(CompoundContext& context, const nfs4::RemoveXattrArguments&) {
  TRY_ASSIGN(const nfs4::ChangeInfo change, change_now(context, context.current.handle));
  return nfs4::RemoveXattrResult{change};
}

// What was made is the current object for what follows; removed since, it is NOENT.
nfs4::CreateResponse done(CompoundContext& context, const nfs4::CreateArguments& arguments) {
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_access(*directory, kMayExecute));
  TRY_ASSIGN(const InodePointer made, context.services.names.lookup(directory->id, arguments.name));
  const nfs4::ChangeInfo change{.atomic = false, .before = 0, .after = directory->change};
  const auto through =
      context.services.exports.seen_through(context.current.handle->export_id, made->id, context.peer_host());
  context.set_current(context.handle_of(*made, through.value_or(Exports::kPseudoId)));
  return nfs4::CreateResult{change, arguments.attributes.mask()};
}

// The open was put on record with the file, or gave way to a delegation. After a reboot of the host both are forgotten,
// as all are.
nfs4::OpenResponse done(CompoundContext& context, const nfs4::OpenArguments& arguments) {
  const OpenState* const open = context.services.opens.find(context.done_open);
  const DelegationState* const held =
      context.services.delegations.table().find(with_kind(StateKind::kDelegation, context.done_open));
  if (open == nullptr && held == nullptr) return Status::kDeadSession;
  TRY_ASSIGN(const nfs4::ChangeInfo change, change_now(context, context.current.handle));
  TRY_ASSIGN(const InodePointer made,
             context.services.names.get(open != nullptr ? open->inode : held->inode));
  context.set_current(context.handle_of(*made));
  context.set_current_stateid(open != nullptr ? open->stateid() : held->stateid());
  const bool times = (arguments.share_access & nfs4::kShareAccessWantDelegatedTimes) != 0;
  nfs4::OpenResult result =
      open != nullptr ? open_result(open->stateid()) : result_without_open(given_delegation(*held, times));
  result.change = change;
  if (const auto* how = arguments.how.get_if<nfs4::OpenType::kCreate>())
    result.attributes_set = created_with(*how);
  return result;
}

// Leads to an object, or looks at it; needs neither session nor client.
bool runs_again(Operation operation) {
  switch (operation) {
    case Operation::kAccess:
    case Operation::kGetAttributes:
    case Operation::kGetFileHandle:
    case Operation::kLookup:
    case Operation::kLookupParent:
    case Operation::kNegatedVerify:
    case Operation::kPutFileHandle:
    case Operation::kPutPublicFileHandle:
    case Operation::kPutRootFileHandle:
    case Operation::kRestoreFileHandle:
    case Operation::kSaveFileHandle:
    case Operation::kSequence:
    case Operation::kVerify:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<nfs4::ResultOperation> answer_as_done(CompoundContext& context,
                                                    const nfs4::ArgumentOperation& arguments) {
  const Operation operation = nfs4::operation_of(arguments);
  // It was so before the change, or that would not have been made.
  const bool held = context.done && context.request.index < *context.done;
  if (held && (operation == Operation::kVerify || operation == Operation::kNegatedVerify))
    return nfs4::status_result(operation, Status::kOk);
  if (!context.done || runs_again(operation)) return std::nullopt;
  if (context.request.index <= *context.done) {
    if (const auto* remove = std::get_if<nfs4::RemoveArguments>(&arguments)) return done(context, *remove);
    if (const auto* link = std::get_if<nfs4::LinkArguments>(&arguments)) return done(context, *link);
    if (const auto* rename = std::get_if<nfs4::RenameArguments>(&arguments)) return done(context, *rename);
    if (const auto* set = std::get_if<nfs4::SetXattrArguments>(&arguments)) return done(context, *set);
    if (const auto* gone = std::get_if<nfs4::RemoveXattrArguments>(&arguments)) return done(context, *gone);
    if (const auto* create = std::get_if<nfs4::CreateArguments>(&arguments)) return done(context, *create);
    const auto* open = std::get_if<nfs4::OpenArguments>(&arguments);
    if (open != nullptr && context.request.index == *context.done) return done(context, *open);
  }
  return nfs4::status_result(operation, Status::kDeadSession);
}

}  // namespace pnfsrdma::mds

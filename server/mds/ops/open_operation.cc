// SPDX-License-Identifier: Apache-2.0
#include "server/mds/ops/delegation_grant.h"
#include "server/mds/ops/handlers.h"
#include "server/mds/ops/new_inode.h"
#include "server/mds/ops/open_result.h"
#include "server/mds/ops/size_change.h"
#include "server/mds/state/conflicts.h"
#include "server/mds/state/server_limits.h"
#include "server/mds/state/state_store.h"

// OPEN (RFC 8881, 18.16): who asks for what, which file that is, whether it may be had, and the state of it.
namespace pnfsrdma::mds {

using nfs4::ClaimType;
using nfs4::Status;

namespace {

struct Share {
  uint32_t access = 0;  // kShare*
  uint32_t deny = 0;
  uint32_t want = 0;      // which delegation the client would like
  bool times = false;     // with the file's times
  bool only_one = false;  // then without the open's stateid (RFC 9754, 4)

  // Its bit in OpenState::combinations.
  uint16_t combination() const { return static_cast<uint16_t>(1U << (access * 4 + deny)); }
};

// The file an OPEN is about.
struct Target {
  ObjectHandle handle;
  nfs4::ChangeInfo change;
  nfs4::Bitmap attributes_set;
  bool entitled = false;                // made by an earlier try of this OPEN: opened whatever its mode says
  std::optional<uint64_t> resize;       // 0: truncated
  std::optional<nfs4::Stateid> opened;  // made by this one, with its open
};

Outcome<Share> check_share(const nfs4::OpenArguments& arguments) {
  constexpr uint32_t kFlags = nfs4::kShareAccessWantSignalWhenAvailable |
                              nfs4::kShareAccessWantPushWhenUncontended |
                              nfs4::kShareAccessWantDelegatedTimes | nfs4::kShareAccessWantOpenOrDelegation;
  Share share;
  share.access = arguments.share_access & kShareBoth;
  share.want = arguments.share_access & nfs4::kShareAccessWantMask;
  share.times = (arguments.share_access & nfs4::kShareAccessWantDelegatedTimes) != 0;
  share.only_one = (arguments.share_access & nfs4::kShareAccessWantOpenOrDelegation) != 0;
  share.deny = arguments.share_deny;
  const uint32_t unknown = arguments.share_access & ~(kShareBoth | nfs4::kShareAccessWantMask | kFlags);
  if (share.access == 0 || unknown != 0 || share.want > nfs4::kShareAccessWantCancel ||
      share.deny > kShareBoth) {
    return std::unexpected(Status::kInval);
  }
  return share;
}

Outcome<> check_claim(const nfs4::OpenArguments& arguments) {
  switch (arguments.claim.discriminant()) {
    case ClaimType::kNull:
      return {};
    case ClaimType::kFileHandle:
    case ClaimType::kPrevious:
    case ClaimType::kDelegateCurrent:
    case ClaimType::kDelegateCurrentFileHandle:
      // What is named by its filehandle, or delegated, is there already.
      if (arguments.how.is<nfs4::OpenType::kCreate>()) return std::unexpected(Status::kInval);
      return {};
    case ClaimType::kDelegatePrevious:
    case ClaimType::kDelegatePreviousFileHandle:
      return std::unexpected(Status::kNotSupp);
  }
  return std::unexpected(Status::kInval);
}

Outcome<> check_type(const Inode& inode) {
  if (inode.is_directory()) return std::unexpected(Status::kIsDir);
  if (inode.type == FileType::kSymlink) return std::unexpected(Status::kSymlink);
  if (!inode.is_regular()) return std::unexpected(Status::kWrongType);
  return {};
}

// What createhow4 asks for, in the words of the namespace.
struct Creation {
  CreateMode mode = CreateMode::kUnchecked;
  nfs4::Attributes attributes;
  nfs4::Verifier verifier{};
};
Creation creation_of(const nfs4::CreateHow& how) {
  Creation creation;
  if (const auto* verifier = how.get_if<nfs4::CreateMode::kExclusive>()) {
    creation.mode = CreateMode::kExclusive;
    creation.verifier = *verifier;
  } else if (const auto* exclusive = how.get_if<nfs4::CreateMode::kExclusive41>()) {
    creation.mode = CreateMode::kExclusive;
    creation.verifier = exclusive->verifier;
    creation.attributes = exclusive->attributes;
  } else if (const auto* guarded = how.get_if<nfs4::CreateMode::kGuarded>()) {
    creation.mode = CreateMode::kGuarded;
    creation.attributes = *guarded;
  } else if (const auto* unchecked = how.get_if<nfs4::CreateMode::kUnchecked>()) {
    creation.attributes = *unchecked;
  }
  return creation;
}

// The name is taken already.
Outcome<> meet_existing(const CompoundContext& context, const Creation& creation, const Inode& inode,
                        Target& target) {
  if (creation.mode == CreateMode::kGuarded) return std::unexpected(Status::kExist);
  if (creation.mode == CreateMode::kUnchecked) {
    TRY(check_type(inode));
    // Of the attributes only "size 0" means anything for a file that is there (RFC 8881, 18.16.3).
    if (creation.attributes.size == 0) {
      target.resize = 0;
      target.attributes_set = nfs4::Bitmap::of(nfs4::Attribute::kSize);
    }
    return {};
  }
  // The same verifier: a retry of the create that made it, perhaps over a new session.
  const bool same = inode.is_regular() && (inode.flags & kInodeHasVerifier) != 0 &&
                    inode.exclusive_verifier == creation.verifier;
  if (!same) return std::unexpected(Status::kExist);
  target.attributes_set = creation.attributes.mask();
  target.entitled = context.credentials().uid == inode.uid;
  return {};
}

Outcome<> check_room(const CompoundContext& context) {
  const size_t opens = context.services.opens.opens_of_client(context.client_id()).size();
  if (opens >= context.services.limits.opens_per_client_max) return std::unexpected(Status::kDelay);
  if (!context.services.opens.has_room(context.client_id())) return std::unexpected(Status::kDelay);
  return {};
}

// Null: the file is named by its filehandle.
const nfs4::Component* name_of(const nfs4::OpenClaim& claim) {
  if (const auto* delegated = claim.get_if<ClaimType::kDelegateCurrent>()) return &delegated->file;
  return claim.get_if<ClaimType::kNull>();
}

OpenState new_open(const CompoundContext& context, InodeId inode, const Share& share, ByteSpan owner) {
  OpenState made;
  made.other = make_stateid_other(StateKind::kOpen, context.services.clock.now(), context.services.random);
  made.client = context.client_id();
  made.inode = inode;
  made.owner.assign(owner.begin(), owner.end());
  made.access = share.access;
  made.deny = share.deny;
  made.combinations = share.combination();
  return made;
}

// The file and its open are one batch: a name without it would be met by a GUARDED one that is asked for again.
// Nobody else has a file that is new: nothing can refuse its open, or has to be called back for it.
Outcome<> create_file(const CompoundContext& context, const Creation& creation, const Inode& directory,
                      const nfs4::OpenArguments& arguments, Target& target) {
  const nfs4::Component& name = *name_of(arguments.claim);
  TRY_ASSIGN(const Share share, check_share(arguments));
  TRY(context.check_writable());
  TRY(context.check_new_name(directory, name));
  TRY(check_room(context));
  TRY_ASSIGN(NewInode wanted, new_inode(context, directory, FileType::kRegular, creation.attributes));
  const Status allowed = check_create(context.requester(), directory);
  if (allowed != Status::kOk) return std::unexpected(allowed);
  wanted.how = creation.mode;
  wanted.verifier = creation.verifier;
  Namespace& names = context.services.names;
  OpenState open = new_open(context, names.next_inode(), share, arguments.owner.owner);
  Batch with = context.done_record(open.other);
  StateStore::put(with, open);
  TRY_ASSIGN(const Created created, names.create(directory.id, name, wanted, with));
  if (created.existed) return std::unexpected(Status::kDelay);
  CHECK(created.inode->id == open.inode);
  target.handle = context.handle_of(*created.inode);
  target.change = {true, created.directory.before, created.directory.after};
  target.attributes_set = creation.attributes.mask();
  target.opened = context.services.opens.add(std::move(open)).stateid();
  return {};
}

// The pseudo file system has directories only; the real one of the same number is none of the caller's
// business.
Status pseudo_refusal(const CompoundContext& context, InodeId directory, std::string_view name,
                      const nfs4::OpenArguments& arguments) {
  if (arguments.how.is<nfs4::OpenType::kCreate>()) return Status::kRoFs;
  for (const auto& entry : context.services.exports.pseudo_entries(directory, context.peer_host())) {
    if (entry.name == name) return Status::kIsDir;
  }
  return Status::kNoEnt;
}

// CLAIM_NULL, CLAIM_DELEGATE_CUR: a name in the current directory.
Outcome<Target> find_or_create(const CompoundContext& context, const nfs4::OpenArguments& arguments,
                               bool was_there) {
  const nfs4::Component& name = *name_of(arguments.claim);
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  TRY(context.check_access(*directory, kMayExecute));
  if (context.current.handle->export_id == Exports::kPseudoId)
    return std::unexpected(pseudo_refusal(context, directory->id, name, arguments));
  Target target;
  target.change = {true, directory->change, directory->change};
  const auto found = context.lookup(*directory, name);
  if (found) target.handle = context.handle_of(**found);
  const nfs4::CreateHow* how = arguments.how.get_if<nfs4::OpenType::kCreate>();
  if (!how) {
    TRY(found);
    return target;
  }
  const Creation creation = creation_of(*how);
  if (found) {
    TRY(meet_existing(context, creation, **found, target));
  } else if (found.error() != Status::kNoEnt) {
    return std::unexpected(found.error());
  } else if (was_there) {
    return std::unexpected(Status::kDelay);  // who believes since then that it is not there was not recalled
  } else {
    TRY(create_file(context, creation, *directory, arguments, target));
  }
  return target;
}

// Before a name is made that is not there. Whether it is, is asked once, and told: later runs find what this
// operation has made.
Outcome<bool> recall_directory(CompoundContext& context, const nfs4::OpenArguments& arguments) {
  const nfs4::Component* name = name_of(arguments.claim);
  if (name == nullptr || !arguments.how.is<nfs4::OpenType::kCreate>()) return false;
  if (context.current.handle->export_id == Exports::kPseudoId) return false;
  TRY_ASSIGN(const InodePointer directory, context.current_directory());
  struct Before {
    bool is_there = false;
    bool creates = false;
  };
  TRY_ASSIGN(const Before before, context.suspension.once<Before>([&] {
    const auto found = context.lookup(*directory, *name);
    const bool creates = !found && found.error() == Status::kNoEnt && !context.read_only() &&
                         check_create(context.requester(), *directory) == Status::kOk;
    return Before{.is_there = found.has_value(), .creates = creates};
  }));
  if (before.creates) TRY(context.recall_delegations(*directory));
  return before.is_there;
}

// Finding or making the file is done once, so that a re-run does not make it again (and meet it as existing).
Outcome<Target> find_target(CompoundContext& context, const nfs4::OpenArguments& arguments, bool was_there) {
  if (name_of(arguments.claim) == nullptr) {
    Target target;
    TRY_ASSIGN(target.handle, context.current_handle());
    return target;
  }
  TRY_ASSIGN(const Outcome<Target> target, context.suspension.once<Outcome<Target>>([&] {
    return find_or_create(context, arguments, was_there);
  }));
  return target;
}

// The delegation that an open was made under, without us: null for every other claim.
const nfs4::Stateid* delegation_of(const nfs4::OpenClaim& claim) {
  if (const auto* delegated = claim.get_if<ClaimType::kDelegateCurrent>())
    return &delegated->delegate_stateid;
  return claim.get_if<ClaimType::kDelegateCurrentFileHandle>();
}

// RFC 8881, 10.2.1: what a client has opened by its delegation it opens here before it returns that.
Outcome<> check_delegation(const CompoundContext& context, const nfs4::OpenClaim& claim, const Inode& inode,
                           uint32_t access) {
  const nfs4::Stateid* stateid = delegation_of(claim);
  if (stateid == nullptr) return {};
  TRY_ASSIGN(const DelegationState* held, context.find_delegation(*stateid, inode.id));
  if ((access & kShareWrite) != 0 && held->kind == DelegationKind::kRead)
    return std::unexpected(Status::kInval);
  return {};
}

// A reclaim is nothing but what the client says of an earlier OPEN, so it is checked as any. The owner may
// have opened the file before he changed its mode, or as its maker: he could give himself what he asks for.
Outcome<> check_permission(const CompoundContext& context, const Inode& inode, const Target& target,
                           const Share& share, bool reclaim) {
  if ((share.access & kShareWrite) != 0) TRY(context.check_writable());
  if (target.entitled) return {};
  if (reclaim && context.credentials().uid == inode.uid) return {};
  uint32_t wanted = 0;
  if ((share.access & kShareRead) != 0) wanted |= kMayRead;
  if ((share.access & kShareWrite) != 0 || target.resize) wanted |= kMayWrite;
  // RFC 8881, 6.2.1.3.1: a program is executed by reading it. Whether this is for that only the client knows.
  // A client that knows no ACLs would let him read by it whom only an ACL keeps from that.
  const bool client_may_err = mode_grants(context.credentials(), inode, kMayRead);
  if (wanted == kMayRead && !client_may_err && context.check_access(inode, kMayExecute)) return {};
  return context.check_access(inode, wanted);
}

// The open of this owner: a new one, or the one it has with more rights (RFC 8881, 9.11).
Outcome<nfs4::Stateid> take_state(CompoundContext& context, const Inode& inode, const Share& share,
                                  ByteSpan owner) {
  OpenTable& opens = context.services.opens;
  StateStore& store = context.services.state_store;
  if (OpenState* open = opens.find(context.client_id(), inode.id, owner)) {
    OpenState upgraded = *open;
    upgraded.seqid = next_seqid(upgraded.seqid);
    upgraded.access |= share.access;
    upgraded.deny |= share.deny;
    upgraded.combinations |= share.combination();
    TRY(store.put(upgraded));
    opens.replace(*open, std::move(upgraded));
    return open->stateid();
  }
  TRY(check_room(context));
  OpenState made = new_open(context, inode.id, share, owner);
  TRY(store.put(made));
  return opens.add(std::move(made)).stateid();
}

nfs4::Delegation delegation_for(CompoundContext& context, const nfs4::OpenArguments& arguments,
                                const Inode& inode, const ObjectHandle& handle, const Share& share,
                                const StateidOther& instead_of = {}) {
  const DelegationWish wish{.want = share.want, .times = share.times, .instead_of = instead_of};
  const auto* previous = arguments.claim.get_if<ClaimType::kPrevious>();
  if (previous != nullptr && *previous != nfs4::DelegationType::kNone)
    return reclaim_delegation(context, inode, handle, *previous, wish);
  return grant_delegation(context, inode, handle, share.access, wish);
}

// RFC 9754, 4. A delegation keeps nobody out whom only an open denies something: then both are given.
bool takes_only_one(const Share& share) {
  return share.only_one && share.deny == 0;
}

nfs4::OpenResult answer(CompoundContext& context, const Target& target, const nfs4::Stateid& stateid,
                        nfs4::Delegation delegation) {
  context.set_current(target.handle);
  context.set_current_stateid(stateid);
  nfs4::OpenResult result = open_result(stateid);
  result.change = target.change;
  result.attributes_set = target.attributes_set;
  result.delegation = std::move(delegation);
  return result;
}

// What follows uses the delegation.
nfs4::OpenResult answer_without_open(CompoundContext& context, const Target& target,
                                     nfs4::Delegation delegation) {
  context.set_current(target.handle);
  context.set_current_stateid(*stateid_of(delegation));
  nfs4::OpenResult result = result_without_open(std::move(delegation));
  result.change = target.change;
  result.attributes_set = target.attributes_set;
  return result;
}

// Its open is on record with it, and goes where a delegation is enough.
nfs4::OpenResult answer_created(CompoundContext& context, const nfs4::OpenArguments& arguments,
                                const Inode& inode, const Target& target, const Share& share) {
  const bool only_one = takes_only_one(share);
  nfs4::Delegation delegation = delegation_for(context, arguments, inode, target.handle, share,
                                               only_one ? target.opened->other : StateidOther{});
  OpenState* const open = context.services.opens.find(target.opened->other);
  if (only_one && stateid_of(delegation) != nullptr && context.services.state_store.erase(*open, {})) {
    context.services.opens.remove(*open);
    return answer_without_open(context, target, std::move(delegation));
  }
  return answer(context, target, *target.opened, std::move(delegation));
}

}  // namespace

nfs4::OpenResponse handle(CompoundContext& context, const nfs4::OpenArguments& arguments) {
  TRY(context.current_handle());
  TRY_ASSIGN(const Share share, check_share(arguments));
  const ClaimType claim = arguments.claim.discriminant();
  TRY(check_claim(arguments));
  // What is open by a delegation was so before the grace period.
  const bool delegated = delegation_of(arguments.claim) != nullptr;
  if (!delegated) TRY(context.check_grace(claim == ClaimType::kPrevious));

  TRY_ASSIGN(const bool was_there, recall_directory(context, arguments));
  TRY_ASSIGN(const Target target, find_target(context, arguments, was_there));
  TRY_ASSIGN(const InodePointer inode, context.services.names.get(target.handle.inode));
  if (inode->generation != target.handle.generation) return Status::kStale;
  if (target.opened) return answer_created(context, arguments, *inode, target, share);
  TRY(check_type(*inode));
  TRY(check_delegation(context, arguments.claim, *inode, share.access));
  TRY(check_permission(context, *inode, target, share, delegated || claim == ClaimType::kPrevious));
  OpenTable& opens = context.services.opens;
  const OpenState* mine = opens.find(context.client_id(), inode->id, arguments.owner.owner);
  const uint32_t access = share.access | (target.resize ? kShareWrite : 0);
  const bool writes = (access & kShareWrite) != 0;
  // First: who holds one may keep an open that nobody uses.
  const bool changes = writes || (share.deny & kShareRead) != 0;
  TRY(context.recall_known_delegations(*inode, changes ? FileAct::kChange : FileAct::kUse));
  if (!opens.share_allowed(inode->id, access, share.deny, mine)) {
    return claim == ClaimType::kPrevious ? Status::kReclaimConflict : Status::kShareDenied;
  }
  // Layouts outlive their opens: one that still lets a client do what is now denied has to come back first.
  if (share.deny != 0) {
    TRY_ASSIGN(const Status recalled, context.suspension.ask<Status>([&](auto done) {
      context.services.layouts.before_access_change(inode->id, context.client_id(), std::move(done));
    }));
    if (recalled != Status::kOk) return recalled;
  }
  if (writes) {
    TRY_ASSIGN(const Status asks_again, context.suspension.ask<Status>([&](auto done) {
      context.services.layouts.before_open_to_write(inode->id, context.client_id(), std::move(done));
    }));
    if (asks_again != Status::kOk) return asks_again;
  }
  if (target.resize) TRY(change_size(context, *inode, *target.resize));
  // While the size was changed.
  if (writes && context.services.layouts.has_sole_writer(inode->id, context.client_id()))
    return Status::kDelay;

  // Who has the file open already is told of that, too: his open has more rights now.
  std::optional<nfs4::Delegation> delegation;
  if (takes_only_one(share) && mine == nullptr) {
    delegation = delegation_for(context, arguments, *inode, target.handle, share);
    if (stateid_of(*delegation) != nullptr)
      return answer_without_open(context, target, *std::move(delegation));
  }
  TRY_ASSIGN(const nfs4::Stateid stateid, take_state(context, *inode, share, arguments.owner.owner));
  if (!delegation) delegation = delegation_for(context, arguments, *inode, target.handle, share);
  return answer(context, target, stateid, *std::move(delegation));
}

}  // namespace pnfsrdma::mds

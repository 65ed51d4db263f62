// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/client_files.h"

#include "shared/base/check.h"
#include "shared/nfs4/status_errno.h"

namespace pnfsrdma::sim {

using fuse_client::Question;

namespace {

// No user is told from another here.
const initiator::Credential kCaller;

constexpr size_t kHeldMax = 3;        // so that some go for others
constexpr size_t kKeptBytes = 4'000;  // of inodes that the kernel has forgotten: two, more or less

}  // namespace

ClientFiles::ClientFiles(initiator::Session& session, initiator::SessionMds& mds,
                         initiator::DataPath& data_path, const Clock& clock, const nfs4::FileHandle& root,
                         bool delegates)
    : session_(session),
      clock_(clock),
      delegates_(delegates),
      inodes_(0, kKeptBytes),
      closes_(session),
      delegations_(closes_, kHeldMax),
      lock_calls_(session, delegations_, clock),
      beliefs_(clock, session, delegations_, timeouts_),
      opens_(session, data_path, delegations_, closes_, beliefs_, clock, timeouts_),
      reclaimer_(session, data_path, inodes_, lock_calls_, delegations_, closes_.revoked()),
      callbacks_(data_path, inodes_, delegations_, [](const Inode&) {}) {
  inodes_.set_root(std::make_shared<Inode>(root, 1));
  mds.bring_attributes(client::stat_attributes(), [this](const auto& handle, const auto&... said) {
    if (const auto inode = inodes_.find(handle)) beliefs_.learn_with_write(*inode, said...);
  });
  session.set_handlers(&callbacks_, &reclaimer_);
}

void ClientFiles::end() {
  delegations_.end_all();
  closes_.stop();
}

void ClientFiles::learn(Inode& inode, const Question& question, const nfs4::Attributes& attributes) {
  const auto said = client::to_file_attributes(attributes);
  CHECK(said.has_value());
  (void)beliefs_.learn(inode, question, *said);
}

bool ClientFiles::look_up(const ServedFile& file, const std::string& name) {
  const Question question = beliefs_.ask(nullptr);
  const auto reply = session_.call(
      {nfs4::PutFileHandleArguments{inodes_.root()->handle}, nfs4::LookupArguments{nfs4::Component(name)},
       nfs4::GetFileHandleArguments{}, nfs4::GetAttributesArguments{client::stat_attributes()}},
      kCaller);
  CHECK(reply.has_value());
  const auto* handle = reply->result<nfs4::GetFileHandleResponse>(2);
  const auto* attributes = reply->result<nfs4::GetAttributesResponse>(3);
  if (handle == nullptr || attributes == nullptr || handle->object != file.handle) return false;
  const auto inode = inodes_.look_up(file.handle, attributes->attributes.file_id.value());
  Known& known = known_[file.handle];
  known.inode = inode;
  ++known.lookups;
  learn(*inode, question, attributes->attributes);
  inode->found_as(*inodes_.root(), name, clock_.now() + timeouts_.directory_min);
  inodes_.named(*inode, inodes_.root(), name);
  return true;
}

// While somebody renames it, it may have been found by neither name.
std::shared_ptr<ClientFiles::Inode> ClientFiles::look_up(const ServedFile& file) {
  while (!look_up(file, file.name) && !look_up(file, file.other_name)) {
  }
  return known_[file.handle].inode;
}

std::shared_ptr<ClientFiles::Inode> ClientFiles::known(const ServedFile& file) {
  const auto inode = known_[file.handle].inode;
  return inode && !inode->name_is_lost() ? inode : look_up(file);
}

ClientFiles::Opened ClientFiles::open(const ServedFile& file, bool writes) {
  const std::shared_ptr<Inode> inode = known(file);
  inode->begin_open();
  const uint32_t access = writes ? nfs4::kShareAccessBoth : nfs4::kShareAccessRead;
  if (auto opened = opens_.under_delegation(inode, kCaller, access))
    return {inode, std::move(opened->data), opened->attributes};
  for (auto name = inode->name();; name = nullptr) {
    auto [operations, open_at] = opens_.request(*inode, name.get(), access, delegates_);
    // As a mount asks when it creates a file.
    const bool as_created = delegates_ && writes && !inode->delegation();
    auto* const wish = std::get_if<nfs4::OpenArguments>(&operations[open_at]);
    if (as_created) wish->share_access = nfs4::kShareAccessBoth | nfs4::kShareAccessWantWriteDelegation;
    const Question question = beliefs_.ask(inode.get());
    const auto reply = session_.call(std::move(operations), kCaller, {.cache_reply = true});
    CHECK(reply.has_value());
    const auto* open = reply->result<nfs4::OpenResponse>(open_at);
    const auto* attributes = reply->result<nfs4::GetAttributesResponse>(open_at + 1);
    if (open != nullptr && attributes != nullptr) {
      fuse_client::FileOpens::Granted granted{*open, attributes->attributes, access};
      if (as_created) granted.created_for = access;
      auto opened = opens_.granted(inode, question, granted, kCaller);
      CHECK(opened.has_value());
      return {inode, std::move(opened->data), opened->attributes};
    }
    // It has another name by now: the next one looks it up, this one opens it by handle.
    CHECK(name != nullptr);
    inode->lose_name(name);
  }
}

std::expected<ClientFiles::Found, int> ClientFiles::find(const std::vector<std::string>& path) {
  initiator::Session::Operations operations{nfs4::PutFileHandleArguments{inodes_.root()->handle}};
  for (const std::string& name : path) operations.emplace_back(nfs4::LookupArguments{nfs4::Component(name)});
  operations.emplace_back(nfs4::GetFileHandleArguments{});
  operations.emplace_back(nfs4::GetAttributesArguments{client::stat_attributes()});
  const auto reply = session_.call(std::move(operations), kCaller);
  CHECK(reply.has_value());
  const auto* handle = reply->result<nfs4::GetFileHandleResponse>(path.size() + 1);
  const auto* attributes = reply->result<nfs4::GetAttributesResponse>(path.size() + 2);
  if (handle == nullptr || attributes == nullptr) return std::unexpected(nfs4::to_errno(reply->status));
  return Found{handle->object, attributes->attributes.file_id.value()};
}

std::expected<ClientFiles::Opened, int> ClientFiles::open_found(const Found& file) {
  const std::shared_ptr<Inode> inode = inodes_.look_up(file.handle, file.number);
  inode->begin_open();
  auto [operations, open_at] = opens_.request(*inode, nullptr, nfs4::kShareAccessRead, false);
  const Question question = beliefs_.ask(inode.get());
  const auto reply = session_.call(std::move(operations), kCaller, {.cache_reply = true});
  CHECK(reply.has_value());
  const auto* open = reply->result<nfs4::OpenResponse>(open_at);
  const auto* attributes = reply->result<nfs4::GetAttributesResponse>(open_at + 1);
  if (open == nullptr || attributes == nullptr) {
    opens_.close_if_last(inode, inode->open_failed());
    return std::unexpected(nfs4::to_errno(reply->status));
  }
  auto opened =
      opens_.granted(inode, question, {*open, attributes->attributes, nfs4::kShareAccessRead}, kCaller);
  if (!opened) return std::unexpected(opened.error());
  return Opened{inode, std::move(opened->data), opened->attributes};
}

void ClientFiles::release(const std::shared_ptr<Inode>& inode) {
  opens_.close_if_last(inode, inode->release());
}

client::FileAttributes ClientFiles::attributes(const ServedFile& file) {
  const std::shared_ptr<Inode> inode = known(file);
  if (const auto believed = beliefs_.believed(*inode, clock_.now()))
    return fuse_client::Beliefs::with_local_view(*inode, believed->attributes);
  return refresh(*inode);
}

client::FileAttributes ClientFiles::refresh(Inode& inode) {
  const Question question = beliefs_.ask(&inode);
  const auto reply = session_.call(
      {nfs4::PutFileHandleArguments{inode.handle}, nfs4::GetAttributesArguments{client::stat_attributes()}},
      kCaller);
  const auto* result = reply ? reply->result<nfs4::GetAttributesResponse>(1) : nullptr;
  CHECK(result != nullptr);
  learn(inode, question, result->attributes);
  return *client::to_file_attributes(result->attributes);
}

bool ClientFiles::set_group(const ServedFile& file, gid_t group) {
  const std::shared_ptr<Inode> inode = known(file);
  if (const auto data = inode->data(); data && !data->settle()) return false;
  nfs4::SetAttributesArguments set;
  set.attributes.owner_group = nfs4::Text(std::to_string(group));
  inode->rights_changed(clock_.now());
  const Question question = beliefs_.ask(inode.get());
  const auto reply = session_.call({nfs4::PutFileHandleArguments{inode->handle}, set,
                                    nfs4::GetAttributesArguments{client::stat_attributes()}},
                                   kCaller, {.cache_reply = true});
  inode->rights_changed(clock_.now());
  const auto* result = reply ? reply->result<nfs4::GetAttributesResponse>(2) : nullptr;
  if (result == nullptr) {
    inode->expire();
    return false;
  }
  learn(*inode, question, result->attributes);
  return true;
}

void ClientFiles::names_changed(Inode& inode, const Question& asked) {
  (void)inode.name_changed(asked.name_changes, beliefs_.name_changed());
}

void ClientFiles::rename(const ServedFile& file) {
  const std::shared_ptr<Inode> inode = known(file);
  for (const auto& [from, to] :
       {std::pair(file.name, file.other_name), std::pair(file.other_name, file.name)}) {
    const Question question = beliefs_.ask(inode.get());
    const auto reply =
        session_.call({nfs4::PutFileHandleArguments{inodes_.root()->handle}, nfs4::SaveFileHandleArguments{},
                       nfs4::RenameArguments{nfs4::Component(from), nfs4::Component(to)}},
                      kCaller, {.cache_reply = true});
    CHECK(reply.has_value());
    names_changed(*inode, question);
    if (reply->succeeded(2)) return inodes_.named(*inode, inodes_.root(), to);
  }
}

void ClientFiles::link_for_a_moment(const ServedFile& file) {
  const nfs4::PutFileHandleArguments directory{inodes_.root()->handle};
  const nfs4::Component second(file.second_name);
  const std::shared_ptr<Inode> inode = known(file);
  const Question question = beliefs_.ask(inode.get());
  (void)session_.call({nfs4::PutFileHandleArguments{file.handle}, nfs4::SaveFileHandleArguments{}, directory,
                       nfs4::LinkArguments{second}},
                      kCaller, {.cache_reply = true});
  names_changed(*inode, question);
  const Question asked_again = beliefs_.ask(inode.get());
  (void)session_.call({directory, nfs4::RemoveArguments{second}}, kCaller, {.cache_reply = true});
  names_changed(*inode, asked_again);
}

int ClientFiles::lock(const std::shared_ptr<Inode>& inode, fuse_client::LockOwner owner,
                      const nfs4::LockRange& range) {
  const Question question = beliefs_.ask(inode.get());
  fuse_client::LockWish wish;
  wish.inode = inode;
  wish.owner = owner;
  wish.range = range;
  wish.credential = kCaller;
  const auto given = lock_calls_.lock(wish);
  if (!given) return given.error().number();
  if (!given->here) inode->data_changes();
  if (given->attributes) (void)beliefs_.learn(*inode, question, *given->attributes);
  return 0;
}

int ClientFiles::unlock(Inode& inode, fuse_client::LockOwner owner, const nfs4::LockRange& range) {
  if (const auto data = inode.data()) (void)data->hand_over();
  const auto done = lock_calls_.unlock(inode, owner, range, true);
  return done ? 0 : done.error().number();
}

void ClientFiles::forget(const ServedFile& file) {
  const auto known = known_.extract(file.handle);
  if (!known || !known.mapped().inode) return;
  inodes_.forget(known.mapped().inode->node, known.mapped().lookups);
  for (const auto& gone : inodes_.take_gone()) delegations_.end(gone);
}

}  // namespace pnfsrdma::sim
